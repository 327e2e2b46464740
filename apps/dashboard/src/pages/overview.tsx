import { useCallback, useMemo, useState } from 'preact/hooks'
import type { QueueFigures, SeriesAnswer } from '../api/answers.ts'
import { streamState, useEvents } from '../api/live.ts'
import { quantile } from '../api/metrics.ts'
import { useQueueList } from '../api/queue-list.ts'
import { useStore } from '../api/store.ts'
import { useCluster } from '../api/use-cluster.ts'
import { useData } from '../api/use-data.ts'
import { type NodeMetrics, useMetrics } from '../api/use-metrics.ts'
import { findAttention } from '../attention.ts'
import { Chart } from '../parts/chart.tsx'
import { count, duration, plural, rate } from '../parts/format.ts'
import { Figure, Page, Panel } from '../parts/layout.tsx'
import { Empty, Failure, Loading } from '../parts/notice.tsx'
import { hrefOf } from '../shell/router.ts'

export function OverviewPage() {
  const { queues, error } = useQueueList()
  const cluster = useCluster()
  const metrics = useMetrics()
  const totals = useTotals()
  const attention = useMemo(
    () => findAttention(queues ?? [], cluster.data, metrics),
    [queues, cluster.data, metrics],
  )
  const problem = error ?? cluster.error
  return (
    <Page
      title="Overview"
      note={clusterNote(cluster.data, queues)}
      curl={{ path: '/stats?scope=cluster' }}
    >
      {problem === undefined ? null : <Failure error={problem} />}
      {queues === undefined ? (
        problem === undefined && <Loading />
      ) : (
        <>
          <Figures totals={totals ?? addUp(queues, cluster.data?.totals.waiting)} />
          <AttentionPanel {...attention} hasQueues={queues.length > 0} />
        </>
      )}
      <ThroughputPanel />
      <LatencyPanel metrics={metrics} />
    </Page>
  )
}

function clusterNote(
  cluster: ReturnType<typeof useCluster>['data'],
  queues: readonly QueueFigures[] | undefined,
): string {
  if (cluster === undefined) return ''
  const all = cluster.nodes.length + cluster.unreachable.length
  const nodes =
    cluster.unreachable.length === 0
      ? plural(all, 'node')
      : `${cluster.nodes.length} of ${plural(all, 'node')}`
  return `${nodes}, ${plural(queues?.length ?? 0, 'queue')}. Answered by ${cluster.node}.`
}

interface Totals {
  readonly pushedPerSecond: number
  readonly deliveredPerSecond?: number
  readonly completedPerSecond: number
  readonly ready: number | null
  readonly leased: number | null
  readonly retrying: number | null
  readonly scheduled: number | null
  readonly dead: number | null
  readonly oldestAgeMs: number | null
  readonly waiting?: number | undefined
}

/** The totals of the event stream, once a second; undefined without a stream. */
function useTotals(): Totals | undefined {
  const stream = useStore(streamState)
  const [totals, setTotals] = useState<Totals>()
  const received = useCallback((event: Readonly<Record<string, unknown>>) => {
    setTotals((event as { total?: Totals }).total)
  }, [])
  useEvents('rates', received)
  return stream === 'live' ? totals : undefined
}

/** Added up from the list of queues. */
function addUp(queues: readonly QueueFigures[], waiting: number | undefined): Totals {
  const sum = (pick: (one: QueueFigures) => number) =>
    queues.reduce((all, one) => all + pick(one), 0)
  const oldest = queues.reduce((most, one) => Math.max(most, one.oldestAgeMs ?? 0), 0)
  return {
    pushedPerSecond: sum((one) => one.pushedPerSecond),
    completedPerSecond: sum((one) => one.completedPerSecond),
    ready: sum((one) => one.ready),
    leased: sum((one) => one.leased),
    retrying: sum((one) => one.retrying),
    scheduled: sum((one) => one.scheduled),
    dead: sum((one) => one.dead),
    oldestAgeMs: oldest === 0 ? null : oldest,
    waiting,
  }
}

function Figures({ totals }: { totals: Totals }) {
  return (
    <div class="figures">
      <Figure label="Pushed" value={rate(totals.pushedPerSecond)} unit="/s" />
      <Figure label="Delivered" value={rate(totals.deliveredPerSecond)} unit="/s" />
      <Figure label="Completed" value={rate(totals.completedPerSecond)} unit="/s" />
      <Figure label="Ready" value={count(totals.ready)} />
      <Figure label="Running" value={count(totals.leased)} />
      <Figure label="Retrying" value={count(totals.retrying)} />
      <Figure label="Scheduled" value={count(totals.scheduled)} />
      <Figure
        label="Dead letters"
        value={count(totals.dead)}
        tone={(totals.dead ?? 0) > 0 ? 'warn' : undefined}
      />
      <Figure label="Oldest" value={duration(totals.oldestAgeMs)} />
      <Figure label="Waiting pops" value={count(totals.waiting)} />
    </div>
  )
}

function AttentionPanel({
  items,
  hidden,
  hasQueues,
}: ReturnType<typeof findAttention> & { hasQueues: boolean }) {
  return (
    <Panel
      title="Needs attention"
      note={items.length === 0 ? undefined : plural(items.length + hidden, 'item')}
    >
      {items.length === 0 ? (
        <Empty
          title={
            hasQueues
              ? 'Nothing. All queues move, and all nodes answer.'
              : 'There are no queues yet.'
          }
        >
          {hasQueues ? undefined : (
            <>
              The first push creates a queue: <a href={hrefOf('queues')}>push a message</a>.
            </>
          )}
        </Empty>
      ) : (
        <ul class="attention">
          {items.map(({ key, level, text, action, href }) => (
            <li key={key} class={level}>
              <span>{text}</span>
              <a href={href}>{action}</a>
            </li>
          ))}
        </ul>
      )}
      {hidden > 0 ? (
        <p class="muted">And {count(hidden)} more: the list of queues has all.</p>
      ) : null}
    </Panel>
  )
}

const minutes10Ms = 600_000

function ThroughputPanel() {
  const { data } = useData<SeriesAnswer>('/api/v1/series', { everyMs: 2_000 })
  const chart = useMemo(() => (data === undefined ? undefined : lastOf(data, minutes10Ms)), [data])
  return (
    <Panel title="Throughput" note="messages per second, the last 10 minutes">
      {chart === undefined ? (
        <Loading />
      ) : (
        <>
          <Chart label="Pushed and completed messages per second" {...chart} />
          <MissingNodes series={data} />
        </>
      )}
    </Panel>
  )
}

/** A chart without the numbers of some nodes says so: they may be most of the messages. */
export function MissingNodes({ series }: { series: SeriesAnswer | undefined }) {
  const missing = series?.unreachable ?? []
  if (missing.length === 0) return null
  return (
    <p class="warn-text">
      Without the messages of {missing.map(({ id }) => id).join(', ')}:{' '}
      {missing.length === 1 ? 'it' : 'they'} did not answer in time.
    </p>
  )
}

/** The newest part of a series, as lines of a chart. */
export function lastOf({ from, stepMs, pushed, completed }: SeriesAnswer, spanMs: number) {
  const skip = Math.max(0, pushed.length - Math.floor(spanMs / stepMs))
  const startMs = Date.parse(from)
  const perSecond = (values: readonly (number | null)[]) =>
    values.slice(skip).map((value) => (value === null ? null : (value * 1_000) / stepMs))
  return {
    times: pushed.slice(skip).map((_, i) => (startMs + (skip + i) * stepMs) / 1_000),
    lines: [
      { label: 'pushed', color: 'accent', values: perSecond(pushed) },
      { label: 'completed', color: 'good', values: perSecond(completed) },
    ],
  }
}

function LatencyPanel({ metrics }: { metrics: NodeMetrics | undefined }) {
  const at = (q: number) => {
    const seconds = metrics === undefined ? undefined : quantile(q, metrics.delivery)
    return seconds === undefined ? '–' : duration(seconds * 1_000)
  }
  const nodes = metrics?.deliveryNodes ?? []
  const read =
    metrics === undefined || nodes.length === 0
      ? ''
      : `: ${plural(metrics.delivery.count, 'message')} in the last seconds through ${nodes.join(', ')}`
  return (
    <Panel title="End-to-end time" note={`from the push to the first delivery${read}`}>
      <div class="figures">
        <Figure label="p50" value={at(0.5)} />
        <Figure label="p95" value={at(0.95)} />
        <Figure label="p99" value={at(0.99)} />
      </div>
    </Panel>
  )
}
