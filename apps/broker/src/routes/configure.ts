import {
  type ConfigureAnswer,
  type ConfigureBody,
  ConfigureBodySchema,
  fieldError,
  parseNamespace,
  parseQueueName,
  parseTask,
  readFields,
} from '@rouse/protocol'
import { type ConfiguredQueue, configure, type QueuePlace, queuePlace } from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { runAdminQuery } from '../http/admin-query.ts'
import { withoutNulls } from '../http/json-body.ts'
import { bodySchema } from '../http/request-schema.ts'
import type { BrokerContext } from '../worker/context.ts'

export function configureRoute(app: FastifyInstance, context: BrokerContext): void {
  app.post(
    '/api/v1/configure',
    {
      schema: { body: bodySchema(ConfigureBodySchema) },
      preValidation: async (request) => void withoutNulls(request.body),
    },
    async (request): Promise<ConfigureAnswer> => {
      const body = request.body as ConfigureBody
      const { queue, namespace, task } = readFields({
        queue: () => parseQueueName(body.queue),
        namespace: () =>
          body.namespace === undefined ? undefined : parseNamespace(body.namespace),
        task: () => (body.task === undefined ? undefined : parseTask(body.task)),
      })
      const options = checkNumbers(body.options ?? {})
      const mayMove = namespace !== undefined || task !== undefined
      const before = mayMove
        ? await runAdminQuery(context.pool, () => queuePlace(context.pool, queue))
        : undefined
      const configured = await runAdminQuery(context.pool, (executor) => {
        return configure(executor, { queue, namespace, task, options })
      })
      const place = { namespace: configured.namespace, task: configured.task }
      const hint = { queue, partition: null, group: null, ...place, count: 0 }
      const { version } = configured
      context.tellConfigured(hint, version, mayMove && hasMoved(before, configured))
      return { configured: true, queueId: configured.queueId, options: configured.options }
    },
  )
}

/** JSON.parse reads 1e999 as Infinity, which JSON.stringify writes as null: "back to the default". */
function checkNumbers(options: Readonly<Record<string, unknown>>) {
  for (const [name, value] of Object.entries(options)) {
    const numbers: readonly unknown[] = Array.isArray(value) ? value : [value]
    if (numbers.some((number) => Math.abs(number as number) === Number.POSITIVE_INFINITY)) {
      throw fieldError('invalid_option', name, 'is out of range')
    }
  }
  return options
}

/** Also true if another client changed the queue in between: it may have been elsewhere for a moment. */
function hasMoved(before: QueuePlace | undefined, after: ConfiguredQueue): boolean {
  return (
    before === undefined ||
    after.version !== before.version + 1 ||
    after.namespace !== before.namespace ||
    after.task !== before.task
  )
}
