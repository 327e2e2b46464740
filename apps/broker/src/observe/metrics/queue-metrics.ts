// The metrics of queues. Counters are those of this node; gauges are read from the database and are the same on
// every node. Only the busiest queues and those with the most messages have series of their own.
import type { QueueFigures } from '@rouse/storage'
import { otherQueues } from '../named-queues.ts'
import type { NodeMetrics } from '../node-activity.ts'
import { type CountedField, countOf } from '../queue-counts.ts'
import type { Exposition } from './exposition.ts'
import type { StatsForMetrics } from './node-metrics.ts'

const counters: readonly (readonly [name: string, field: CountedField, help: string])[] = [
  ['rouse_messages_pushed_total', 'pushed', 'Messages that entered the queue'],
  ['rouse_messages_scheduled_total', 'scheduled', 'Messages pushed with a delay'],
  ['rouse_messages_duplicate_total', 'duplicates', 'Pushes of messages that were stored already'],
  ['rouse_messages_delivered_total', 'delivered', 'Messages given to consumers, all attempts'],
  ['rouse_messages_redelivered_total', 'redelivered', 'Messages given to consumers again'],
  ['rouse_messages_dead_lettered_total', 'deadLettered', 'Messages that became dead letters'],
  ['rouse_acks_stale_total', 'staleAcks', 'Acks refused because the lease was lost'],
]

const endings: Readonly<Record<string, CountedField>> = {
  completed: 'completed',
  failed: 'failed',
  retry: 'retried',
  dlq: 'buried',
}

export function writeQueueCounters(out: Exposition, { queues }: NodeMetrics): void {
  for (const [name, field, help] of counters) {
    const family = out.family(name, 'counter', help)
    for (const [queue, counts] of queues) family.sample(countOf(counts, field), { queue })
  }
  const ended = out.family('rouse_messages_ended_total', 'counter', 'Accepted acks, by status')
  for (const [queue, counts] of queues) {
    for (const [status, field] of Object.entries(endings)) {
      ended.sample(countOf(counts, field), { queue, status })
    }
  }
}

const gauges: readonly (readonly [name: string, field: GaugeField, help: string])[] = [
  ['rouse_queue_ready', 'ready', 'Messages not yet delivered to the group that is furthest behind'],
  ['rouse_queue_leased', 'leased', 'Messages held by consumers'],
  ['rouse_queue_retrying', 'retrying', 'Messages to be delivered again'],
  ['rouse_queue_scheduled', 'scheduled', 'Messages not due yet'],
  ['rouse_queue_dead_letters', 'dead', 'Dead letters'],
  ['rouse_queue_consumers', 'pops', 'Pops whose messages are held'],
]
type GaugeField = 'ready' | 'leased' | 'retrying' | 'scheduled' | 'dead' | 'pops'

/** What is shown of one queue, or of several together. */
type Shown = Record<GaugeField, number> & {
  queue: string
  oldestAgeMs: number | null
  waiters: number
}

export function writeQueueGauges(
  out: Exposition,
  figures: readonly QueueFigures[],
  metrics: NodeMetrics,
  queuesMax: number,
): void {
  const { waiting } = metrics.stats as unknown as StatsForMetrics
  const waiters = new Map(Object.entries(waiting.by_queue))
  const shown = chooseShown(figures, new Set(metrics.queues.map(([queue]) => queue)), queuesMax)
  for (const one of shown) one.waiters = waiters.get(one.queue) ?? 0
  const others = shown.find(({ queue }) => queue === otherQueues)
  const named = shown.reduce((total, one) => total + (one === others ? 0 : one.waiters), 0)
  if (others !== undefined) others.waiters = waiting.total - named
  for (const [name, field, help] of gauges) {
    const family = out.family(name, 'gauge', `${help}; the same on every node`)
    for (const one of shown) family.sample(one[field], { queue: one.queue })
  }
  const help = 'Age of the oldest message not yet delivered; the same on every node'
  const oldest = out.family('rouse_queue_oldest_age_seconds', 'gauge', help)
  for (const one of shown) {
    oldest.sample(one.oldestAgeMs === null ? 0 : one.oldestAgeMs / 1_000, { queue: one.queue })
  }
  const waits = out.family('rouse_queue_waiters', 'gauge', 'Pops that wait on this node')
  for (const one of shown) waits.sample(one.waiters, { queue: one.queue })
  out.family('rouse_queues', 'gauge', 'Queues; the same on every node').sample(figures.length)
}

/** The named queues and those with the most messages, up to the limit. The others are added up. */
function chooseShown(
  figures: readonly QueueFigures[],
  named: ReadonlySet<string>,
  queuesMax: number,
): Shown[] {
  const weight = ({ queue, ready, leased, retrying, dead }: QueueFigures): number => {
    return (named.has(queue) ? 0.5 : 0) + ready + leased + retrying + dead
  }
  const byWeight = [...figures].sort((a, b) => weight(b) - weight(a))
  const own = byWeight.filter(({ queue }) => queue !== otherQueues).slice(0, queuesMax)
  const shown = own.map((one): Shown => ({ ...one, waiters: 0 }))
  const ownNames = new Set(own.map(({ queue }) => queue))
  const others: Shown = {
    queue: otherQueues,
    ready: 0,
    leased: 0,
    retrying: 0,
    scheduled: 0,
    dead: 0,
    pops: 0,
    oldestAgeMs: null,
    waiters: 0,
  }
  for (const one of figures) {
    if (ownNames.has(one.queue)) continue
    for (const [, field] of gauges) others[field] += one[field]
    if (one.oldestAgeMs !== null) {
      others.oldestAgeMs = Math.max(others.oldestAgeMs ?? 0, one.oldestAgeMs)
    }
  }
  return [...shown, others]
}
