// The state of a message: shows it, waits until it has ended, and takes reports of its progress. A request that
// waits holds no connection to the database, and none of the slots for administrative reads.
import {
  decodeLeaseToken,
  type ProgressAnswer,
  type ProgressBody,
  parseBoolean,
  parseConsumerGroup,
  parseDecimal,
  RouseError,
  readFields,
  requestDefaults,
} from '@rouse/protocol'
import { type AwaitedGroups, newestGroup, uniqueOf } from '@rouse/storage'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { refuseForeign } from '../../auth/forbidden.ts'
import type { ReadSlots } from '../../http/admin-limits.ts'
import { runAdminQuery } from '../../http/admin-query.ts'
import { admitPoll } from '../../http/authorization.ts'
import { ClientWatch } from '../../http/client-watch.ts'
import { shownTo } from '../../http/redaction.ts'
import type { BrokerContext } from '../../worker/context.ts'
import { leaseLost } from '../ack.ts'
import { findById, idOf, toText } from '../message-by-id.ts'
import type { Query } from '../messages.ts'
import { jsonText } from '../push.ts'

interface StateContext extends BrokerContext {
  /** Limits the reads of all administrative routes together. */
  readonly reads: ReadSlots
}

const path = '/api/v1/messages/:id'

export function messageStateRoutes(app: FastifyInstance, context: StateContext): void {
  app.get(path, async (request, reply) => {
    const wait = readWait(request.query as Query, context)
    if (wait !== undefined) await waitForEnd(request, reply, wait, context)
    // The key of the request has ended, or the client is gone.
    if (reply.sent) return reply
    reply.type('application/json; charset=utf-8')
    const found = await find(request, context)
    const unique = await context.reads.use(() =>
      runAdminQuery(context.pool, (executor) => uniqueOf(executor, found.id)),
    )
    return shownTo(request.principal, found.queue, toText(found, unique, context))
  })

  app.post(`${path}/progress`, async (request): Promise<ProgressAnswer> => {
    const body = request.body as ProgressBody
    const id = idOf(request)
    const progress = jsonText(body, 'progress', 'progress', context.limits.progressBytesMax)
    const token = decodeLeaseToken(body.receipt)
    if (token === undefined) throw leaseLost()
    const { leaseId, partitionId, seq } = token
    refuseForeign(request.principal, [partitionId], context.queueOfPartition)
    const report = { id, leaseId, partitionId, seq, progress }
    if (!(await context.sidecar.submit({ kind: 'PROGRESS', report }))) throw leaseLost()
    return { id, success: true }
  })
}

interface Wait {
  readonly timeoutMs: number
  /** Undefined: all groups that exist now. */
  readonly group: string | undefined
}

/** Undefined: the request does not wait. */
function readWait(query: Query, { limits }: BrokerContext): Wait | undefined {
  const { wait, timeout, consumerGroup } = query
  const { waits, ...read } = readFields({
    waits: () => wait !== undefined && parseBoolean('wait', wait),
    timeoutMs: () =>
      timeout === undefined
        ? requestDefaults.popTimeoutMs
        : parseDecimal('timeout', timeout, { min: 0, max: limits.popTimeoutMsMax }),
    group: () => (consumerGroup === undefined ? undefined : parseConsumerGroup(consumerGroup)),
  })
  return waits ? read : undefined
}

/** Resolves when the message has ended, at the deadline, on drain, or when the client disconnects. */
async function waitForEnd(
  request: FastifyRequest,
  reply: FastifyReply,
  { timeoutMs, group }: Wait,
  context: StateContext,
): Promise<void> {
  if (request.method === 'HEAD') {
    reply.header('allow', 'GET')
    throw new RouseError('method_not_allowed', 'a request that waits supports GET')
  }
  admitPoll(request, reply, context)
  const watch = new ClientWatch(request, reply, { release() {} })
  const { id, queue } = await find(request, context)
  if (timeoutMs === 0) return
  const groups: AwaitedGroups =
    group === undefined ? { newestId: await newestIn(queue, context) } : { name: group }
  const outcome = await context.sidecar.submit({
    kind: 'END_WAIT',
    queue,
    message: { id, groups },
    timeoutMs,
    signal: watch,
  })
  if (outcome === 'draining') reply.header('connection', 'close')
}

function find(request: FastifyRequest, context: StateContext): ReturnType<typeof findById> {
  const id = idOf(request)
  return context.reads.use(() => findById(id, request.principal, 'read', context))
}

function newestIn(queue: string, { pool, reads }: StateContext): Promise<number> {
  return reads.use(() => runAdminQuery(pool, (executor) => newestGroup(executor, queue)))
}
