// Queues: configure, list, pause, resume, purge and delete them.
import {
  type CheckedOptionsAnswer,
  type ConfigureAnswer,
  type ConfigureBody,
  type DeletedAnswer,
  fieldError,
  fieldErrorsMax,
  type PausedAnswer,
  type PurgedAnswer,
  parseNamespace,
  parseQueueName,
  parseTask,
  type Queue,
  QueueOptionsSchema,
  type QueuesAnswer,
  RouseError,
  readFields,
  suggest,
  unknownField,
} from '@rouse/protocol'
import {
  type ConfiguredQueue,
  type ConsumerGroupStats,
  checkOptions,
  configure,
  deleteQueue,
  purge,
  purgeUnderWay,
  type QueuePlace,
  type QueueStats,
  queueOptions,
  queuePlace,
  replaceQueue,
  setPaused,
  stats,
  statsOfMatching,
} from '@rouse/storage'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { noSuchQueue, runAdminQuery } from '../http/admin-query.ts'
import { withoutNulls } from '../http/json-body.ts'
import { cursorAfter, readOffset, readPage, readText } from '../http/page.ts'
import type { BrokerContext } from '../worker/context.ts'

export function queueRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, limits, coordinator } = context

  app.post(
    '/api/v1/configure',
    {
      preValidation: async (request) => void withoutNulls(request.body),
    },
    async (request): Promise<ConfigureAnswer | CheckedOptionsAnswer> => {
      const body = request.body as ConfigureBody
      if (body.dryRun === true) return checkOnly(body, context)
      const done = await applyConfigure(request, body, configure, context)
      return { configured: true, queueId: done.queueId, options: done.options }
    },
  )

  app.get('/api/v1/resources/queues', async (request): Promise<QueuesAnswer> => {
    const query = request.query as Query
    const page = readPage(query, limits)
    const filter = {
      ...readQueueFilter(query),
      visible: request.principal.grants.visible('observe'),
    }
    const queues = await runAdminQuery(pool, () => statsOfMatching(pool, { ...page, ...filter }))
    const names = queues.map(({ queue }) => queue)
    return { queues: queues.map(toQueue), cursor: cursorAfter(names, page) }
  })

  app.get('/api/v1/resources/queues/:queue', async (request) => {
    const name = queueOf(request)
    const [queue] = await runAdminQuery(pool, (executor) => stats(executor, name))
    const options = await runAdminQuery(pool, () => queueOptions(pool, name))
    const purging = await runAdminQuery(pool, () => purgeUnderWay(pool, name))
    if (queue === undefined || options === undefined) throw noSuchQueue(name)
    return { ...toQueue(queue), options, ...(purging === undefined ? {} : { purging }) }
  })

  app.delete('/api/v1/resources/queues/:queue', (request): Promise<DeletedAnswer> => {
    return removeQueue(request, queueOf(request), context)
  })

  app.post('/api/v1/queues/:queue/pause', async (request): Promise<PausedAnswer> => {
    const queue = queueOf(request)
    await runAdminQuery(pool, (executor) => setPaused(executor, queue, true))
    context.queueChanged(queue, 'paused', request.principal.name)
    return { queue, paused: true }
  })

  app.post('/api/v1/queues/:queue/resume', async (request): Promise<PausedAnswer> => {
    const queue = queueOf(request)
    coordinator.notifyPartitionFree(
      await runAdminQuery(pool, (executor) => setPaused(executor, queue, false)),
    )
    context.queueChanged(queue, 'resumed', request.principal.name)
    return { queue, paused: false }
  })

  app.post('/api/v1/queues/:queue/purge', async (request, reply): Promise<PurgedAnswer> => {
    const queue = queueOf(request)
    const purged = await runAdminQuery(pool, (executor) => purge(executor, queue))
    context.queueChanged(queue, 'purged', request.principal.name)
    if (purged !== null) return { queue, purged }
    reply.code(202).header('location', `/api/v1/resources/queues/${encodeURIComponent(queue)}`)
    return { queue, purging: true }
  })
}

export async function removeQueue(
  { principal }: FastifyRequest,
  queue: string,
  { pool, queueChanged }: Pick<BrokerContext, 'pool' | 'queueChanged'>,
): Promise<DeletedAnswer> {
  const existed = await runAdminQuery(pool, (executor) => deleteQueue(executor, queue))
  if (!existed) throw noSuchQueue(queue)
  queueChanged(queue, 'deleted', principal.name)
  return { deleted: true }
}

type Query = Readonly<Record<string, unknown>>

export function readQueueFilter(query: Query) {
  const { search, namespace, task } = query
  return readFields({
    offset: () => readOffset(query),
    search: () => (search === undefined ? undefined : readText('search', search)),
    namespace: () => (isAbsent(namespace) ? undefined : parseNamespace(namespace)),
    task: () => (isAbsent(task) ? undefined : parseTask(task)),
  })
}

function readPlace(body: ConfigureBody) {
  return readFields({
    queue: () => parseQueueName(body.queue),
    namespace: () => (isAbsent(body.namespace) ? undefined : parseNamespace(body.namespace)),
    task: () => (isAbsent(body.task) ? undefined : parseTask(body.task)),
  })
}

/**
 * Checks the options alone: it does not notice what the state of the queue forbids, such as another ordering
 * while messages are leased.
 */
async function checkOnly(
  body: ConfigureBody,
  { pool }: BrokerContext,
): Promise<CheckedOptionsAnswer> {
  readPlace(body)
  const options = checkNumbers(body.options ?? {})
  await runAdminQuery(pool, (executor) => checkOptions(executor, options)).catch(
    (error: unknown) => {
      throw withSuggestions(error, Object.keys(options))
    },
  )
  return { configured: false, dryRun: true }
}

/** Calls one of the functions that configure a queue, and announces the change to all nodes. */
export async function applyConfigure(
  { principal }: FastifyRequest,
  body: ConfigureBody,
  call: typeof configure,
  { pool, tellConfigured, queueChanged }: BrokerContext,
): Promise<ConfiguredQueue> {
  const { queue, namespace, task } = readPlace(body)
  const options = checkNumbers(body.options ?? {})
  const mayMove = namespace !== undefined || task !== undefined || call === replaceQueue
  const before = await runAdminQuery(pool, () => queuePlace(pool, queue))
  const configured = await runAdminQuery(pool, (executor) => {
    return call(executor, { queue, namespace, task, options })
  }).catch((error: unknown) => {
    throw withSuggestions(error, Object.keys(options))
  })
  const place = { namespace: configured.namespace, task: configured.task }
  const hint = { queue, partition: null, group: null, ...place, count: 0 }
  tellConfigured(hint, configured.version, mayMove && hasMoved(before, configured))
  queueChanged(queue, before === undefined ? 'created' : 'configured', principal.name)
  return configured
}

/** Existing clients send an empty namespace or task for an absent one. */
function isAbsent(name: unknown): boolean {
  return name === undefined || name === ''
}

const optionNames = Object.keys(QueueOptionsSchema.properties)

/** SQL names the first unknown option. Adds the others, and for each the option that is probably meant. */
function withSuggestions(error: unknown, given: readonly string[]): unknown {
  if (!(error instanceof RouseError) || error.code !== 'unknown_option') return error
  const first = error.errors?.map(({ field }) => field) ?? []
  const others = given.filter((name) => !optionNames.includes(name) && !first.includes(name))
  const errors = [...first, ...others].map((name) =>
    unknownField(name, suggest(name, optionNames), 'queue option'),
  )
  return new RouseError(error.code, error.detail, { errors: errors.slice(0, fieldErrorsMax) })
}

/** JSON.parse reads 1e999 as Infinity, and JSON.stringify writes that as null, which resets the option. */
function checkNumbers(options: Readonly<Record<string, unknown>>) {
  for (const [name, value] of Object.entries(options)) {
    const numbers: readonly unknown[] = Array.isArray(value) ? value : [value]
    if (numbers.some((number) => Math.abs(number as number) === Number.POSITIVE_INFINITY)) {
      throw fieldError('invalid_option', name, 'is out of range')
    }
  }
  return options
}

/** Also true if another client changed the queue in between, because that change may have moved it. */
function hasMoved(before: QueuePlace | undefined, after: ConfiguredQueue): boolean {
  return (
    before === undefined ||
    after.version !== before.version + 1 ||
    after.namespace !== before.namespace ||
    after.task !== before.task
  )
}

function queueOf(request: FastifyRequest): string {
  return parseQueueName((request.params as { readonly queue: string }).queue)
}

function toQueue(queue: QueueStats): Queue {
  const groups = queue.groups.map((group) => toGroup(queue.queue, group))
  return { ...queue, name: queue.queue, groups }
}

export function toGroup(
  queue: string,
  { group, ...stats }: ConsumerGroupStats,
): Queue['groups'][number] {
  return {
    consumerGroup: group,
    name: group,
    queue,
    queueName: queue,
    ...stats,
    oldestPendingAt: stats.oldestPendingAt?.toISOString() ?? null,
    lastSeenAt: stats.lastSeenAt.toISOString(),
  }
}
