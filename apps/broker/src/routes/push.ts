import { type PushBody, PushBodySchema } from '@rouse/protocol'
import type { FastifyInstance } from 'fastify'
import { withoutNulls } from '../http/json-body.ts'
import { bodySchema } from '../http/request-schema.ts'
import type { BrokerContext } from '../worker/context.ts'
import { bytesOf, readPushItems, toPushedAnswer } from './push-items.ts'
import { checkRepeat } from './repeated-push.ts'

/** The answer goes out after COMMIT: the sidecar resolves no earlier. */
export function pushRoute(app: FastifyInstance, context: BrokerContext): void {
  app.post(
    '/api/v1/push',
    {
      schema: { body: bodySchema(PushBodySchema) },
      preValidation: (request, _reply, done) => {
        dropNulls(request.body)
        done()
      },
    },
    async (request, reply) => {
      const { items: given, repeatAfterMs } = request.body as PushBody
      const items = readPushItems(given, context)
      reply.code(201)
      if (items.length === 0) return []
      if (repeatAfterMs !== undefined) await checkRepeat(given, repeatAfterMs, context)
      const pushed = await context.sidecar.submit({ kind: 'PUSH', items, bytes: bytesOf(items) })
      return toPushedAnswer(items, pushed)
    },
  )
}

function dropNulls(body: unknown): void {
  const items = (body as { items?: unknown } | undefined)?.items
  if (!Array.isArray(items)) return
  for (const item of items) withoutNulls(item, 'payload')
}
