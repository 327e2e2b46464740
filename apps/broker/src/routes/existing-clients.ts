// Routes that only existing clients use, in the shapes that they read.
import {
  isPartitionId,
  parseConsumerGroup,
  parseDecimal,
  parseTransactionId,
  RouseError,
} from '@rouse/protocol'
import {
  type GroupPosition,
  laggingPositions,
  partitionNames,
  positionsOfGroup,
  purgeLetters,
  type QueueStats,
  stats,
} from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { requireOnFound } from '../auth/forbidden.ts'
import { noSuchGroup, runAdminQuery } from '../http/admin-query.ts'
import type { BrokerContext } from '../worker/context.ts'

const lagSecondsDefault = 3_600
const lagSecondsMax = 31_536_000
/** The most partitions in one response. */
const positionsMax = 10_000

export function existingClientRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, clock } = context
  const allQueues = () => runAdminQuery(pool, (executor) => stats(executor))

  app.get('/api/v1/resources/namespaces', async () => {
    const places = groupBy(await allQueues(), ({ namespace }) => namespace)
    return { namespaces: [...places].map(([namespace, of]) => ({ namespace, ...sumUp(of) })) }
  })

  app.get('/api/v1/resources/tasks', async () => {
    const places = groupBy(await allQueues(), ({ task }) => task)
    return { tasks: [...places].map(([task, of]) => ({ task, ...sumUp(of) })) }
  })

  app.get('/api/v1/resources/overview', async () => {
    const queues = await allQueues()
    return {
      ...sumUp(queues),
      namespaces: groupBy(queues, ({ namespace }) => namespace).size,
      tasks: groupBy(queues, ({ task }) => task).size,
      timestamp: new Date(clock.wallMs()).toISOString(),
    }
  })

  app.get('/api/v1/consumer-groups/lagging', async (request) => {
    const { minLagSeconds } = request.query as { readonly minLagSeconds?: unknown }
    const lagSeconds =
      minLagSeconds === undefined
        ? lagSecondsDefault
        : parseDecimal('minLagSeconds', minLagSeconds, { min: 0, max: lagSecondsMax })
    const found = await runAdminQuery(pool, () =>
      laggingPositions(pool, lagSeconds * 1_000, positionsMax),
    )
    return found.map(toLag)
  })

  app.get('/api/v1/consumer-groups/:group', async (request) => {
    const group = parseConsumerGroup((request.params as { readonly group: string }).group)
    const found = await runAdminQuery(pool, () => positionsOfGroup(pool, group, positionsMax))
    if (found.length === 0) throw noSuchGroup(group)
    const queues = groupBy(found, ({ queue }) => queue)
    return Object.fromEntries(
      [...queues].map(([queue, of]) => [queue, { partitions: of.map(toPartition) }]),
    )
  })

  app.delete('/api/v1/messages/:partitionId/:transactionId', async (request) => {
    const { partitionId, transactionId } = request.params as Readonly<Record<string, string>>
    const key = parseTransactionId(transactionId)
    const names = isPartitionId(partitionId ?? '')
      ? await runAdminQuery(pool, () => partitionNames(pool, partitionId as string))
      : undefined
    const missing = () =>
      new RouseError(
        'not_found',
        `message "${key}" in partition ${partitionId} has no dead letters, and only those can be deleted`,
      )
    if (names !== undefined) requireOnFound(request.principal, 'manage', names.queue, missing)
    const filter = { partition: names?.partition, transactionId: key }
    const deleted =
      names === undefined
        ? 0
        : await runAdminQuery(pool, () => purgeLetters(pool, names.queue, filter))
    if (deleted > 0) return { success: true, deleted, partitionId, transactionId: key }
    throw missing()
  })
}

/** By name, without entries that have none. */
function groupBy<Entry>(
  entries: readonly Entry[],
  nameOf: (entry: Entry) => string | null,
): Map<string, Entry[]> {
  const groups = new Map<string, Entry[]>()
  for (const entry of entries) {
    const name = nameOf(entry)
    if (name === null) continue
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [entry])
    else group.push(entry)
  }
  return new Map([...groups].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** `pending` counts each message once: for the group of its queue that is furthest behind. */
function sumUp(queues: readonly QueueStats[]) {
  const sum = (count: (queue: QueueStats) => number) =>
    queues.reduce((total, queue) => total + count(queue), 0)
  const groupSum = (queue: QueueStats, field: 'inFlight' | 'dead') =>
    queue.groups.reduce((total, group) => total + group[field], 0)
  return {
    queues: queues.length,
    partitions: sum(({ partitions }) => partitions),
    messages: {
      total: sum(({ messages }) => messages),
      pending: sum(({ messages, groups }) =>
        groups.length === 0 ? messages : Math.max(...groups.map(({ pending }) => pending)),
      ),
      processing: sum((queue) => groupSum(queue, 'inFlight')),
      deadLetter: sum((queue) => groupSum(queue, 'dead')),
      scheduled: sum(({ scheduled }) => scheduled),
    },
  }
}

function toLag(position: GroupPosition): object {
  const lagSeconds = Math.floor(position.oldestAgeMs / 1_000)
  return {
    consumer_group: position.group,
    queue_name: position.queue,
    partition_name: position.partition,
    partition_id: position.partitionId,
    worker_id: null,
    offset_lag: position.pending,
    time_lag_seconds: lagSeconds,
    lag_hours: Math.round(lagSeconds / 36) / 100,
    oldest_unconsumed_at: position.oldestAt?.toISOString() ?? null,
    last_consumed_at: position.lastSeenAt.toISOString(),
  }
}

function toPartition(position: GroupPosition): object {
  return {
    partition: position.partition,
    partitionId: position.partitionId,
    workerId: null,
    lastConsumedAt: position.lastSeenAt.toISOString(),
    offsetLag: position.pending,
    timeLagSeconds: Math.floor(position.oldestAgeMs / 1_000),
    leaseActive: position.isLeased,
  }
}
