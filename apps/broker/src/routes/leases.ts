import {
  decodeLeaseToken,
  type ExtendAnswer,
  type ExtendBody,
  leaseUuidOf,
  type ReleaseAnswer,
  requestDefaults,
} from '@rouse/protocol'
import type { FastifyInstance } from 'fastify'
import { refuseForeign } from '../auth/forbidden.ts'
import type { Principal } from '../auth/principal.ts'
import { withoutNulls } from '../http/json-body.ts'
import type { BrokerContext } from '../worker/context.ts'
import { leaseLost } from './ack.ts'

type Params = { readonly leaseId: string }

/** Extends or releases a lease: all messages of its pop, also by the receipt of one of them. */
export function leaseRoutes(app: FastifyInstance, context: BrokerContext): void {
  app.post(
    '/api/v1/lease/:leaseId/extend',
    {
      preValidation: async (request) => {
        request.body ??= {}
        withoutNulls(request.body)
      },
    },
    async (request): Promise<ExtendAnswer> => {
      const { leaseId } = request.params as Params
      const { seconds = requestDefaults.extendSeconds, exact } = request.body as ExtendBody
      const extended = await context.sidecar.submit({
        kind: 'RENEW_LEASE',
        leaseId: leaseOf(leaseId, request.principal),
        durationMs: seconds * 1_000,
        exact,
      })
      if (extended === null) throw leaseLost()
      const expiresAt = new Date(extended.expiresAtMs).toISOString()
      const remainingMs = Math.max(0, Math.floor(extended.leftMs))
      return { leaseId, expiresAt, newExpiresAt: expiresAt, remainingMs, success: true }
    },
  )

  app.delete('/api/v1/lease/:leaseId', async (request): Promise<ReleaseAnswer> => {
    const { leaseId } = request.params as Params
    const released = await context.sidecar.submit({
      kind: 'RELEASE',
      leaseId: leaseOf(leaseId, request.principal),
    })
    if (!released) throw leaseLost()
    return { leaseId, success: true }
  })

  function leaseOf(text: string, principal: Principal): string {
    const leaseId = leaseUuidOf(text)
    if (leaseId === undefined) throw leaseLost()
    const partitionId = decodeLeaseToken(text)?.partitionId
    refuseForeign(principal, [partitionId], context.queueOfPartition)
    return leaseId
  }
}
