import { useMemo } from 'preact/hooks'
import { quantile, total, valueOf } from '../api/metrics.ts'
import { useCluster } from '../api/use-cluster.ts'
import { type NodeMetrics, useMetrics } from '../api/use-metrics.ts'
import { slowest } from '../attention.ts'
import { bytes, count, duration, plural } from '../parts/format.ts'
import { Figure, Page, Panel, State } from '../parts/layout.tsx'
import { Empty, Loading } from '../parts/notice.tsx'
import { type Column, Table } from '../parts/table.tsx'

const oldTransactionSeconds = 60

export function DatabasePage() {
  const metrics = useMetrics()
  const cluster = useCluster()
  return (
    <Page
      title="Database"
      note={metrics === undefined ? '' : `PostgreSQL, as node ${metrics.node} sees it.`}
      curl={{ path: '/metrics' }}
    >
      {metrics === undefined ? (
        <Loading />
      ) : (
        <>
          <ServerFigures current={metrics} />
          <SlowPanel current={metrics} />
          <SqlPanel current={metrics} />
          <TablesPanel current={metrics} />
          <RetentionLag current={metrics} />
        </>
      )}
      <PoolPanel nodes={cluster.data?.nodes ?? []} />
    </Page>
  )
}

function ServerFigures({ current: { metrics } }: { current: NodeMetrics }) {
  const oldest = valueOf(metrics, 'rouse_database_oldest_transaction_seconds')
  const isUp = valueOf(metrics, 'rouse_database_up') === 1
  const used = valueOf(metrics, 'rouse_database_connections')
  const limit = valueOf(metrics, 'rouse_database_connections_limit')
  return (
    <div class="figures">
      <div class="figure">
        <span class="figure-label">PostgreSQL</span>
        <State of={isUp ? 'ok' : 'unreachable'} />
      </div>
      <Figure
        label="Connections"
        value={count(used)}
        unit={limit === undefined ? '' : `of ${limit}`}
      />
      <Figure
        label="Oldest transaction"
        value={oldest === undefined ? '–' : duration(oldest * 1_000)}
        tone={(oldest ?? 0) > oldTransactionSeconds ? 'warn' : undefined}
      />
      <Figure
        label="Oldest xmin"
        value={count(valueOf(metrics, 'rouse_database_oldest_xmin_transactions'))}
        unit="transactions"
      />
      <Figure label="Overdue writes" value={count(total(metrics, 'rouse_writes_overdue'))} />
      <Figure
        label="Waiting for a connection"
        value={count(total(metrics, 'rouse_pool_queued'))}
        unit="calls"
      />
    </div>
  )
}

/** Says that PostgreSQL is slow, why that may be, and what to do. */
function SlowPanel({ current }: { current: NodeMetrics }) {
  const slow = slowest(current)
  const oldest = valueOf(current.metrics, 'rouse_database_oldest_transaction_seconds') ?? 0
  if (slow === undefined && oldest <= oldTransactionSeconds) {
    return (
      <Panel title="Health">
        <Empty title="PostgreSQL answers in time." />
      </Panel>
    )
  }
  return (
    <Panel title="Health">
      <ul class="attention">
        {slow === undefined ? null : (
          <li class="bad">
            <span>
              {slow} Look for what it waits for: <code>{waitQuery}</code>. End a session that blocks
              others: <code>select pg_terminate_backend(pid)</code>. <code>rouse doctor</code>{' '}
              checks the settings.
            </span>
          </li>
        )}
        {oldest <= oldTransactionSeconds ? null : (
          <li class="warn">
            <span>
              A transaction is open for {duration(oldest * 1_000)}: VACUUM keeps every row that was
              deleted since. End it: <code>{oldestQuery}</code>
            </span>
          </li>
        )}
      </ul>
    </Panel>
  )
}

const waitQuery =
  "select pid, wait_event_type, wait_event, pg_blocking_pids(pid), left(query, 60) from pg_stat_activity where state <> 'idle'"
const oldestQuery =
  'select pid, usename, xact_start, left(query, 60) from pg_stat_activity order by xact_start limit 3'

interface SqlRow {
  readonly name: string
  readonly calls: number
  readonly meanMs: number
  readonly p99Ms: number | undefined
}

const sqlColumns: readonly Column<SqlRow>[] = [
  { key: 'name', title: 'Function', width: '2fr', cell: ({ name }) => <code>{name}</code> },
  {
    key: 'calls',
    title: 'Calls',
    width: '6rem',
    isNumber: true,
    cell: ({ calls }) => count(calls),
  },
  {
    key: 'mean',
    title: 'Mean',
    width: '7rem',
    isNumber: true,
    cell: ({ meanMs }) => duration(meanMs),
  },
  {
    key: 'p99',
    title: 'p99',
    width: '7rem',
    isNumber: true,
    isExtra: true,
    cell: ({ p99Ms }) => duration(p99Ms),
  },
]

function SqlPanel({ current: { sql } }: { current: NodeMetrics }) {
  const rows = useMemo(
    () =>
      [...sql]
        .filter(([, timing]) => timing.count > 0)
        .map(([name, timing]): SqlRow => {
          const p99 = quantile(0.99, timing)
          return {
            name,
            calls: timing.count,
            meanMs: (timing.sum / timing.count) * 1_000,
            p99Ms: p99 === undefined ? undefined : p99 * 1_000,
          }
        })
        .toSorted((a, b) => b.meanMs - a.meanMs),
    [sql],
  )
  return (
    <Panel title="SQL time" note="since the last reading, slowest first">
      <Table
        label="SQL time"
        things="calls"
        columns={sqlColumns}
        rows={rows}
        keyOf={({ name }) => name}
        rowsMax={10}
        empty="No SQL function was called since the last reading."
      />
    </Panel>
  )
}

interface TableRow {
  readonly table: string
  readonly live: number
  readonly dead: number
  readonly size: number
}

const tableColumns: readonly Column<TableRow>[] = [
  { key: 'table', title: 'Table', width: '2fr', cell: ({ table }) => <code>{table}</code> },
  { key: 'size', title: 'Size', width: '6rem', isNumber: true, cell: ({ size }) => bytes(size) },
  { key: 'live', title: 'Rows', width: '7rem', isNumber: true, cell: ({ live }) => count(live) },
  {
    key: 'dead',
    title: 'Dead rows',
    width: '7rem',
    isNumber: true,
    cell: ({ dead }) => count(dead),
  },
]

function TablesPanel({ current: { metrics } }: { current: NodeMetrics }) {
  const rows = (metrics.get('rouse_table_size_bytes') ?? [])
    .map(({ labels, value }): TableRow => {
      const table = labels.table ?? ''
      const rowsIn = (state: string) => valueOf(metrics, 'rouse_table_rows', { table, state }) ?? 0
      return { table, size: value, live: rowsIn('live'), dead: rowsIn('dead') }
    })
    .toSorted((a, b) => b.size - a.size)
  return (
    <Panel title="Tables" note="with indexes; rows are estimates">
      <Table
        label="Tables"
        columns={tableColumns}
        rows={rows}
        keyOf={({ table }) => table}
        rowsMax={10}
        empty="The sizes are read once a minute."
      />
    </Panel>
  )
}

function RetentionLag({ current: { metrics } }: { current: NodeMetrics }) {
  const late = (metrics.get('rouse_retention_lag_seconds') ?? []).filter(({ value }) => value > 0)
  return (
    <Panel title="Retention">
      {late.length === 0 ? (
        <Empty title="Every retention job runs on time." />
      ) : (
        <ul>
          {late.map(({ labels, value }) => (
            <li key={labels.job}>
              {labels.job} is {duration(value * 1_000)} late
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

function PoolPanel({
  nodes,
}: {
  nodes: NonNullable<ReturnType<typeof useCluster>['data']>['nodes']
}) {
  return (
    <Panel title="Connections of the nodes">
      {nodes.map(({ node, pool, database_up: isUp }) => {
        const workers = Object.values(pool)
        const sum = (pick: (one: (typeof workers)[number]) => number) =>
          workers.reduce((all, one) => all + pick(one), 0)
        return (
          <p key={node}>
            <strong>{node}</strong> {isUp ? '' : 'does not reach PostgreSQL: '}
            {count(sum((one) => one.total))} open, {count(sum((one) => one.idle))} idle, at most{' '}
            {count(sum((one) => one.limit))};{' '}
            {plural(
              sum((one) => one.queued),
              'call',
            )}{' '}
            waiting
          </p>
        )
      })}
    </Panel>
  )
}
