import { parseConsumerGroup, parseQueueName, RouseError, type WhyReason } from '@rouse/protocol'
import { groupKey } from '@rouse/shared-state'
import { type QueueFacts, queueFacts } from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { askingAs, clusterStats } from '../cluster/cluster-stats.ts'
import { noSuchQueue, runAdminQuery } from '../http/admin-query.ts'
import type { BrokerContext } from '../worker/context.ts'
import { explain } from './why-reasons.ts'

type Params = { readonly queue: string }
type Query = { readonly consumerGroup?: unknown }

export function whyRoute(app: FastifyInstance, context: BrokerContext): void {
  app.get('/api/v1/queues/:queue/why', async (request) => {
    const queue = parseQueueName((request.params as Params).queue)
    const { consumerGroup } = request.query as Query
    const group = consumerGroup === undefined ? undefined : parseConsumerGroup(consumerGroup)
    const asked = { queue, ...(group === undefined ? {} : { consumerGroup: group }) }
    const mayPeek = request.principal.grants.covers('peek', queue)
    return { ...asked, reasons: await findReasons(queue, group, mayPeek, context) }
  })
}

export async function findReasons(
  queue: string,
  group: string | undefined,
  mayPeek: boolean,
  context: BrokerContext,
): Promise<WhyReason[]> {
  const { pool, config } = context
  let facts: QueueFacts | undefined
  try {
    facts = await runAdminQuery(pool, () => queueFacts(pool, queue, group))
  } catch (error) {
    if (!isDatabaseDown(error)) throw error
    const text =
      'The database does not answer: nothing can be pushed, delivered or acknowledged until it does.'
    return [{ code: 'database_down', text }]
  }
  if (facts === undefined) throw noSuchQueue(queue)
  const waiting = await waitingInCluster(context)
  return explain(mayPeek ? facts : withoutContent(facts), {
    queue,
    waitingFor: (name) => countWaiting(waiting, queue, name, facts),
    idleGroupMs: config.idleGroupSeconds * 1_000,
  })
}

/** Error texts and unique keys are content, which needs `peek`. */
function withoutContent(facts: QueueFacts): QueueFacts {
  const groups = facts.groups.map((group) => ({
    ...group,
    held: group.held.map((lane) => ({ ...lane, errorMessage: null })),
  }))
  return { ...facts, groups, heldKeys: [] }
}

function isDatabaseDown(error: unknown): boolean {
  const code = error instanceof RouseError ? error.code : undefined
  return code === 'database_unavailable' || code === 'outcome_unknown'
}

interface Waiting {
  readonly key: string
  readonly waiting: number
}

/** Waiters on every node that answers within a second. */
async function waitingInCluster(context: BrokerContext): Promise<readonly Waiting[]> {
  const { nodes } = await clusterStats(await context.stats(), askingAs(context.nodeAuthorization))
  return (nodes as readonly { group_backoff: { groups: readonly Waiting[] } }[]).flatMap(
    ({ group_backoff: { groups } }) => groups,
  )
}

function countWaiting(
  known: readonly Waiting[],
  queue: string,
  group: string,
  { namespace, task }: QueueFacts,
): number {
  const any = groupKey({ source: { queue }, group })
  const star = any.indexOf('/*/')
  const [start, end] = [any.slice(0, star + 1), any.slice(star + 2)]
  const shared = [
    ...(namespace === null ? [] : [{ namespace }]),
    ...(task === null ? [] : [{ task }]),
    ...(namespace === null || task === null ? [] : [{ namespace, task }]),
  ].map((source) => groupKey({ source, group }))
  return known
    .filter(({ key }) => (key.startsWith(start) && key.endsWith(end)) || shared.includes(key))
    .reduce((sum, { waiting }) => sum + waiting, 0)
}
