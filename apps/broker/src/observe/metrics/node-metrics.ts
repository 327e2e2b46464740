// The metrics of a node, beside those of its queues: requests, SQL, wake-ups, processes and gossip.
import { durationBoundsMs, type Measured, sizeBounds, type TakenHistogram } from '../histogram.ts'
import type { NodeMetrics } from '../node-activity.ts'
import { countOf } from '../queue-counts.ts'
import type { Exposition, Labels } from './exposition.ts'

/** The fields of `/stats` that metrics are made of. */
export interface StatsForMetrics {
  readonly node: string
  readonly version: string
  readonly uptime: number
  readonly worker_restarts: number
  readonly local_sidecars: number
  readonly database_up: boolean
  readonly mode: { readonly mode: string }
  readonly waiting: { readonly total: number; readonly by_queue: Readonly<Record<string, number>> }
  readonly wakes: Readonly<Record<string, number>>
  readonly wake_latency: Readonly<Record<string, WakeLatency>>
  readonly group_backoff: Readonly<Record<string, number>>
  readonly counters: Readonly<Record<string, number>> & {
    readonly emptyPops: Readonly<Record<string, number>>
  }
  readonly ipc: { readonly sends: number; readonly messages: number }
  readonly gossip: Readonly<Record<string, number>> & {
    readonly drops: Readonly<Record<string, number>>
  }
  readonly peers: readonly { readonly state: string }[]
  readonly pool: Readonly<Record<string, Readonly<Record<PoolField, number>>>>
  readonly time: {
    readonly looks: number
    readonly runs: Readonly<Record<string, number>>
    readonly listener: string
    readonly notifications: number
  }
  readonly retention: { readonly held_by: readonly { readonly messages: number }[] }
}

type PoolField = 'total' | 'idle' | 'queued' | 'limit'

interface WakeLatency {
  readonly sumMs: number
  readonly buckets: readonly { readonly leMs: number | null; readonly count: number }[]
}

export function writeNodeMetrics(out: Exposition, metrics: NodeMetrics): void {
  const stats = metrics.stats as unknown as StatsForMetrics
  writeProcesses(out, stats)
  writeRequests(out, metrics)
  writeWakes(out, stats)
  writeDurations(out, metrics.histograms)
  writeGossip(out, stats)
  writePool(out, stats)
  writeScheduler(out, stats, metrics)
}

function writeProcesses(out: Exposition, stats: StatsForMetrics): void {
  const { node, version, mode } = stats
  out.family('rouse_info', 'gauge', 'Always 1').sample(1, { node, version })
  out.family('rouse_uptime_seconds', 'gauge', 'Since the start of the node').sample(stats.uptime)
  out.family('rouse_workers', 'gauge', 'Workers that serve requests').sample(stats.local_sidecars)
  out
    .family('rouse_worker_restarts_total', 'counter', 'Workers started again after they died')
    .sample(stats.worker_restarts)
  out
    .family(
      'rouse_mode_aggressive',
      'gauge',
      '1 while the node polls at short intervals after a fault',
    )
    .sample(mode.mode === 'aggressive' ? 1 : 0)
  out
    .family('rouse_database_up', 'gauge', '1 if PostgreSQL answers all workers')
    .sample(stats.database_up ? 1 : 0)
  out
    .family('rouse_ipc_sends_total', 'counter', 'Sends between the processes of the node')
    .sample(stats.ipc.sends)
  out
    .family('rouse_ipc_messages_total', 'counter', 'Messages in these sends')
    .sample(stats.ipc.messages)
}

function writeRequests(out: Exposition, { totals, overdueWrites }: NodeMetrics): void {
  out
    .family('rouse_http_requests_total', 'counter', 'HTTP requests of all kinds')
    .sample(totals.requests)
  out
    .family('rouse_spans_exported_total', 'counter', 'Spans that the collector accepted')
    .sample(totals.spans.exported)
  out
    .family('rouse_spans_dropped_total', 'counter', 'Spans that were not exported')
    .sample(totals.spans.dropped)
  const batches = Object.entries(totals.batches)
  const calls = out.family('rouse_sql_batches_total', 'counter', 'SQL calls, by kind of request')
  for (const [kind, batch] of batches) calls.sample(batch.calls, { kind })
  const help = 'Requests that shared these calls, by kind'
  const requests = out.family('rouse_sql_batched_requests_total', 'counter', help)
  for (const [kind, batch] of batches) requests.sample(batch.requests, { kind })
  out
    .family('rouse_writes_overdue', 'gauge', 'SQL calls of writes that exceeded their deadline')
    .samples(overdueWrites, 'kind')
}

function writeWakes(out: Exposition, stats: StatsForMetrics): void {
  const { wakes, wake_latency: latency, counters, group_backoff: groups } = stats
  out.family('rouse_waiters', 'gauge', 'Waiting pops').sample(stats.waiting.total)
  out
    .family('rouse_wakes_total', 'counter', 'Wake-ups of waiting pops, by source')
    .samples(wakes, 'source')
  const wake = out.family(
    'rouse_wake_duration_seconds',
    'histogram',
    'From the arrival of a hint at the node to the end of the pop that found messages, by source',
  )
  for (const [source, { buckets, sumMs }] of Object.entries(latency)) {
    const bounds = buckets.flatMap(({ leMs }) => (leMs === null ? [] : [leMs / 1_000]))
    const counts = buckets.map(({ count }, i) => count - (buckets[i - 1]?.count ?? 0))
    wake.histogram(bounds, counts, sumMs / 1_000, { source })
  }
  out
    .family('rouse_empty_pops_total', 'counter', 'Pops that found nothing, by what caused them')
    .samples(counters.emptyPops, 'cause')
  out
    .family('rouse_wait_groups', 'gauge', 'Wait groups: all, being popped, with a longer interval')
    .sample(groups.groups_tracked, { state: 'tracked' })
    .sample(groups.groups_in_flight, { state: 'in_flight' })
    .sample(groups.groups_backed_off, { state: 'backed_off' })
  out
    .family('rouse_fallback_polls_total', 'counter', 'Wait groups checked without a hint')
    .sample(counters.fallbackChecks)
  out
    .family(
      'rouse_hints_missed_total',
      'counter',
      'Work that a fallback poll found before any hint',
    )
    .sample(counters.unannounced)
  out
    .family(
      'rouse_grant_timeouts_total',
      'counter',
      'Grants not taken, and pops not ended, in time',
    )
    .sample(counters.deliveryTimeouts, { step: 'grant' })
    .sample(counters.popTimeouts, { step: 'pop' })
  out
    .family('rouse_pops_contended_total', 'counter', 'Pops that found only locked lanes')
    .sample(counters.contended)
}

const histogramFamilies: Readonly<
  Record<Measured, { name: string; help: string; label?: string; bounds: readonly number[] }>
> = {
  delivery: {
    name: 'rouse_delivery_duration_seconds',
    help: 'From the creation of a message to its first delivery, by what caused the pop',
    label: 'source',
    bounds: durationBoundsMs,
  },
  processing: {
    name: 'rouse_processing_duration_seconds',
    help: 'From a delivery to its ack, if both went through the same worker',
    bounds: durationBoundsMs,
  },
  batch: {
    name: 'rouse_batch_messages',
    help: 'Messages per SQL call, by kind',
    label: 'kind',
    bounds: sizeBounds,
  },
  sql: {
    name: 'rouse_sql_duration_seconds',
    help: 'Duration of SQL calls, by function',
    label: 'function',
    bounds: durationBoundsMs,
  },
  eventLoop: {
    name: 'rouse_event_loop_delay_seconds',
    help: 'The longest delay of the event loop in each second, by kind of process',
    label: 'process',
    bounds: durationBoundsMs,
  },
}

function writeDurations(out: Exposition, taken: readonly TakenHistogram[]): void {
  for (const [kind, { name, help, label, bounds }] of Object.entries(histogramFamilies)) {
    const perUnit = bounds === durationBoundsMs ? 1_000 : 1
    const family = out.family(name, 'histogram', help)
    for (const [measured, value, { counts, sum }] of taken) {
      if (measured !== kind) continue
      const labels: Labels = label === undefined ? {} : { [label]: value }
      const inUnits = bounds.map((bound) => bound / perUnit)
      family.histogram(inUnits, counts, sum / perUnit, labels)
    }
  }
}

function writeGossip(out: Exposition, { gossip, peers }: StatsForMetrics): void {
  const datagrams = out.family('rouse_gossip_datagrams_total', 'counter', 'Datagrams, by direction')
  datagrams.sample(gossip.datagramsSent, { direction: 'sent' })
  datagrams.sample(gossip.datagramsReceived, { direction: 'received' })
  out
    .family('rouse_gossip_hint_datagrams_total', 'counter', 'Sent datagrams that carry hints')
    .sample(gossip.hintDatagramsSent)
  out.family('rouse_gossip_sent_bytes_total', 'counter', 'Bytes sent').sample(gossip.bytesSent)
  out
    .family('rouse_gossip_rejected_total', 'counter', 'Datagrams rejected, by reason')
    .samples(gossip.drops, 'reason')
  out
    .family('rouse_gossip_stalls_total', 'counter', 'How often the primary or its machine stalled')
    .sample(gossip.stalls)
  const byState: Record<string, number> = { alive: 0 }
  for (const { state } of peers) byState[state] = (byState[state] ?? 0) + 1
  out.family('rouse_peers', 'gauge', 'Other nodes, by state').samples(byState, 'state')
}

function writePool(out: Exposition, { pool }: StatsForMetrics): void {
  const sum = (field: PoolField): number =>
    Object.values(pool).reduce((total, worker) => total + worker[field], 0)
  out
    .family('rouse_pool_connections', 'gauge', 'Connections of the workers to PostgreSQL')
    .sample(sum('total') - sum('idle'), { state: 'busy' })
    .sample(sum('idle'), { state: 'idle' })
  out
    .family('rouse_pool_connections_limit', 'gauge', 'Connections the workers may open now')
    .sample(sum('limit'))
  out.family('rouse_pool_queued', 'gauge', 'Calls that wait for a connection').sample(sum('queued'))
}

function writeScheduler(out: Exposition, stats: StatsForMetrics, metrics: NodeMetrics): void {
  const { time, retention } = stats
  const { counts, expiredLeases, releasedLeases } = metrics
  out
    .family(
      'rouse_redeliveries_total',
      'counter',
      'What made messages return to their queue: acks with failed or retry, and leases that expired or were released',
    )
    .sample(countOf(counts, 'failed'), { reason: 'failed' })
    .sample(countOf(counts, 'retried'), { reason: 'retry' })
    .sample(expiredLeases, { reason: 'expired' })
    .sample(releasedLeases, { reason: 'released' })
  out
    .family('rouse_notifications_received_total', 'counter', 'Notifications of SQL producers')
    .sample(time.notifications, { channel: 'rouse_scheduled' })
  out
    .family(
      'rouse_listener_up',
      'gauge',
      '1 if the node receives the notifications of SQL producers; absent if LISTEN is off',
    )
    .sample(time.listener === 'off' ? undefined : time.listener === 'up' ? 1 : 0)
  out.family('rouse_due_polls_total', 'counter', 'Polls for due times').sample(time.looks)
  out.family('rouse_job_runs_total', 'counter', 'Runs of background jobs').samples(time.runs, 'job')
  out
    .family(
      'rouse_retention_holding_groups',
      'gauge',
      'Idle consumer groups that hold back retention',
    )
    .sample(retention.held_by.length)
  out
    .family('rouse_retention_held_messages', 'gauge', 'Messages that these groups hold back')
    .sample(retention.held_by.reduce((total, { messages }) => total + messages, 0))
}
