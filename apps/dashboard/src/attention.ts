// What needs an operator now, in words, the most urgent first, each with a link to the page that names the cause and
// has the action. Decided from figures alone.
import type { ClusterStats, NodeStats, QueueFigures } from './api/answers.ts'
import { total } from './api/metrics.ts'
import type { NodeMetrics } from './api/use-metrics.ts'
import { count, duration, plural, time, until } from './parts/format.ts'
import { hrefOf } from './shell/router.ts'

export interface Attention {
  readonly key: string
  readonly level: 'bad' | 'warn'
  readonly text: string
  /** What the link says. */
  readonly action: string
  readonly href: string
}

const shownMax = 50
const oldMs = 60_000
const slowSqlMs = 200
const slowCallsMin = 2

export function findAttention(
  queues: readonly QueueFigures[],
  cluster: ClusterStats | undefined,
  metrics: NodeMetrics | undefined,
): { readonly items: readonly Attention[]; readonly hidden: number } {
  const ofQueues = queues.flatMap(ofQueue)
  const items = [
    ...ofDatabase(cluster, metrics),
    ...ofCopy(cluster),
    ...ofNodes(cluster),
    ...ofQueues.filter(({ level }) => level === 'bad'),
    ...ofRetention(cluster),
    ...ofQueues.filter(({ level }) => level === 'warn'),
  ]
  return { items: items.slice(0, shownMax), hidden: Math.max(0, items.length - shownMax) }
}

function ofQueue(figures: QueueFigures): Attention[] {
  const { queue, state, ready, retrying, dead, held, oldestAgeMs } = figures
  const page = hrefOf('queues', [queue])
  const found: Attention[] = []
  const name = `Queue “${queue}”`
  if (state === 'held') {
    const error = held?.errorMessage ? ` (${held.errorMessage.slice(0, 120)})` : ''
    const text = `${name}: a failed message${error} holds its partition; the next attempt is ${until(held?.until)}.`
    found.push({
      key: `held ${queue}`,
      level: 'bad',
      text,
      action: 'See the held partition',
      href: page,
    })
  }
  if (state === 'no_consumers') {
    const age = oldestAgeMs === null ? '' : ` The oldest waits for ${duration(oldestAgeMs)}.`
    const text = `${name}: ${plural(ready + retrying, 'message')} and no consumer.${age}`
    found.push({ key: `idle ${queue}`, level: 'bad', text, action: 'See why', href: page })
  }
  if (state === 'paused' && ready + retrying > 0) {
    const text = `${name} is paused, and ${plural(ready + retrying, 'message')} wait.`
    found.push({ key: `paused ${queue}`, level: 'warn', text, action: 'See the queue', href: page })
  }
  if (state === 'ok' && (oldestAgeMs ?? 0) > oldMs) {
    const text = `${name} is behind: the oldest of ${plural(ready, 'message')} waits for ${duration(oldestAgeMs)}.`
    found.push({ key: `old ${queue}`, level: 'warn', text, action: 'See why', href: page })
  }
  if (dead > 0) {
    const text = `${name} has ${plural(dead, 'dead letter')}.`
    const href = hrefOf('dead-letters', [], { queue })
    found.push({ key: `dead ${queue}`, level: 'warn', text, action: 'See the errors', href })
  }
  return found
}

function ofNodes(cluster: ClusterStats | undefined): Attention[] {
  if (cluster === undefined) return []
  const href = hrefOf('cluster')
  const action = 'See the cluster'
  const gone = cluster.unreachable.map(({ id, error }): Attention => {
    const text = `Node ${id} does not answer: ${error}.`
    return { key: `gone ${id}`, level: 'bad', text, action, href }
  })
  const cut = cutOff(cluster.nodes).map(([from, to]): Attention => {
    const text = `Node ${to} is cut off: gossip with ${from} fails, so ${from} polls instead of waiting for hints.`
    return { key: `cut ${from} ${to}`, level: 'bad', text, action, href }
  })
  const strained = cluster.nodes
    .filter(({ mode }) => mode.mode === 'aggressive' && !mode.why.includes('peer_silent'))
    .map(({ node, mode }): Attention => {
      const text = `Node ${node} polls at short intervals, because hints may be lost: ${mode.why.map(wordsOf).join(', ')}.`
      return { key: `mode ${node}`, level: 'warn', text, action, href }
    })
  const insecure = cluster.nodes
    .filter(({ access }) => access === 'insecure')
    .map(({ node }): Attention => {
      const text = `Node ${node} serves everyone, without credentials, on every address (ROUSE_INSECURE).`
      return {
        key: `open ${node}`,
        level: 'warn',
        text,
        action: 'Create keys',
        href: hrefOf('keys'),
      }
    })
  return [...gone, ...cut, ...strained, ...insecure]
}

const words: Readonly<Record<string, string>> = {
  peer_silent: 'gossip with a peer fails',
  listener_lost: 'the LISTEN connection is lost',
  sidecar_lost: 'a worker was lost',
  grant_untaken: 'a worker did not pop in time',
}

/** Why a node is in aggressive mode. */
export function wordsOf(why: string): string {
  return words[why] ?? why.replaceAll('_', ' ')
}

/** Pairs of nodes: the first runs, and cannot reach the second by gossip although it writes its row. */
export function cutOff(nodes: readonly NodeStats[]): [string, string][] {
  return nodes.flatMap(({ node, peers, mode }) => {
    if (!mode.why.includes('peer_silent')) return []
    return peers
      .filter(({ id, state, hearsUs }) => {
        const runs = nodes.some((one) => one.node === id)
        return runs && (state !== 'alive' || hearsUs === false)
      })
      .map(({ id }): [string, string] => [node, id])
  })
}

function ofDatabase(
  cluster: ClusterStats | undefined,
  metrics: NodeMetrics | undefined,
): Attention[] {
  const [href, action] = [hrefOf('database'), 'See the database']
  const down = (cluster?.nodes ?? [])
    .filter(({ database_up: isUp }) => !isUp)
    .map(({ node }): Attention => {
      const text = `PostgreSQL does not answer node ${node}.`
      return { key: `down ${node}`, level: 'bad', text, action, href }
    })
  const slow = metrics === undefined ? undefined : slowest(metrics)
  if (slow === undefined) return down
  return [...down, { key: 'slow', level: 'bad', text: slow, action, href }]
}

/** Why PostgreSQL counts as slow; undefined if it does not. */
export function slowest({ sql, metrics, node }: NodeMetrics): string | undefined {
  const overdue = total(metrics, 'rouse_writes_overdue')
  if (overdue > 0)
    return `PostgreSQL is slow: ${plural(overdue, 'call')} of node ${node} exceeded the deadline.`
  const [worst] = [...sql]
    .filter(([, timing]) => timing.count >= slowCallsMin)
    .map(([name, { sum, count: calls }]) => ({ name, meanMs: (sum / calls) * 1_000 }))
    .toSorted((a, b) => b.meanMs - a.meanMs)
  if (worst === undefined || worst.meanMs < slowSqlMs) return undefined
  return `PostgreSQL is slow: ${worst.name} takes ${duration(worst.meanMs)} on node ${node}.`
}

function ofCopy(cluster: ClusterStats | undefined): Attention[] {
  const copied = cluster?.nodes.find(({ copy_of: original }) => original != null)?.copy_of
  if (copied == null) return []
  const text =
    `This database is a copy of database “${copied.database}”: schedules and redrives do not run. ` +
    'To make it a cluster of its own, run rouse adopt-copy.'
  const [action, href] = ['See the schedules', hrefOf('schedules')]
  return [{ key: 'copy', level: 'bad', text, action, href }]
}

function ofRetention(cluster: ClusterStats | undefined): Attention[] {
  const held = new Map(
    (cluster?.nodes ?? []).flatMap(({ retention }) =>
      retention.held_by.map((one) => [`${one.queue} ${one.consumerGroup}`, one] as const),
    ),
  )
  return [...held.values()].map(({ queue, consumerGroup, messages, isPartial, lastSeenAt }) => {
    const group = shownGroup(consumerGroup)
    const text =
      `Group “${group}” of queue “${queue}” has made no request since ${time(lastSeenAt)} and keeps ` +
      `${isPartial ? 'at least ' : ''}${count(messages)} messages from retention.`
    const href = hrefOf('groups', [], { queue, group })
    return { key: `kept ${queue} ${group}`, level: 'warn', text, action: 'See the group', href }
  })
}

/** The unnamed group has the name `default` for people. */
export function shownGroup(group: string): string {
  return group === '__QUEUE_MODE__' ? 'default' : group
}
