import { useMemo } from 'preact/hooks'
import type { QueueFigures } from '../api/answers.ts'
import { readQueues, useQueueList } from '../api/queue-list.ts'
import { historyOf } from '../api/rate-history.ts'
import { Sparkline } from '../parts/chart.tsx'
import { FilterChoice, FilterText } from '../parts/fields.tsx'
import { count, duration, plural, rate } from '../parts/format.ts'
import { Page, State } from '../parts/layout.tsx'
import { Failure, Loading } from '../parts/notice.tsx'
import { type Column, sorted, Table } from '../parts/table.tsx'
import { goTo, hrefOf, setQuery, useRoute } from '../shell/router.ts'
import { PushPanel } from './push-panel.tsx'

const weights: Readonly<Record<string, number>> = { held: 4, no_consumers: 3, paused: 2, ok: 0 }

/** What hurts most comes first: a stopped queue with old messages, then dead letters, then backlog. */
function pain({
  state,
  ready,
  retrying,
  dead,
  oldestAgeMs,
  pushedPerSecond,
}: QueueFigures): number {
  const hasWork = ready + retrying > 0 ? 1 : 0
  const age = Math.min((oldestAgeMs ?? 0) / 86_400_000, 1)
  const busy = Math.min(pushedPerSecond / 1e9, 0.001)
  return (weights[state] ?? 0) * hasWork * 10 + age * 10 + (dead > 0 ? 5 : 0) + hasWork + busy
}

const widths: Readonly<Record<string, string>> = {
  scheduled: '4.4rem',
  consumers: '4.6rem',
  dead: '3.2rem',
}

const columns: readonly Column<QueueFigures>[] = [
  {
    key: 'queue',
    title: 'Queue',
    width: '3fr',
    cell: ({ queue }) => (
      <a href={hrefOf('queues', [queue])} title={queue}>
        {queue}
      </a>
    ),
    sortBy: ({ queue }) => queue,
  },
  {
    key: 'pain',
    title: 'State',
    width: '6.4rem',
    narrowWidth: '6.2rem',
    cell: ({ state }) => <State of={state} />,
    sortBy: pain,
  },
  number('ready', 'Ready', ({ ready }) => ready),
  number('leased', 'Running', ({ leased }) => leased, true),
  number('retrying', 'Retrying', ({ retrying }) => retrying, true),
  number('scheduled', 'Scheduled', ({ scheduled }) => scheduled, true),
  number('dead', 'Dead', ({ dead }) => dead),
  number('consumers', 'Consumers', ({ consumers }) => consumers, true),
  {
    key: 'in',
    title: 'In/s',
    width: '3.2rem',
    isNumber: true,
    isExtra: true,
    cell: ({ pushedPerSecond }) => rate(pushedPerSecond),
    sortBy: ({ pushedPerSecond }) => pushedPerSecond,
  },
  {
    key: 'out',
    title: 'Out/s',
    width: '3.2rem',
    isNumber: true,
    isExtra: true,
    cell: ({ completedPerSecond }) => rate(completedPerSecond),
    sortBy: ({ completedPerSecond }) => completedPerSecond,
  },
  {
    key: 'spark',
    title: 'Pushes',
    width: '5.8rem',
    isExtra: true,
    cell: ({ queue }) => (
      <Sparkline values={historyOf(queue)} label="Pushes per second since the page was opened" />
    ),
  },
  {
    key: 'oldest',
    title: 'Oldest',
    width: '5.2rem',
    isNumber: true,
    isExtra: true,
    cell: ({ oldestAgeMs }) => duration(oldestAgeMs),
    sortBy: ({ oldestAgeMs }) => oldestAgeMs ?? -1,
  },
]

function number(
  key: string,
  title: string,
  pick: (row: QueueFigures) => number,
  isExtra = false,
): Column<QueueFigures> {
  const cell = (row: QueueFigures) => count(pick(row))
  return {
    key,
    title,
    width: widths[key] ?? '3.8rem',
    isNumber: true,
    isExtra,
    cell,
    sortBy: pick,
  }
}

export function QueuesPage() {
  const { query } = useRoute()
  const { queues, asOf, error } = useQueueList()
  const { search = '', state = '', sort = 'pain' } = query
  const rows = useMemo(() => {
    const wanted = (queues ?? []).filter((one) => {
      return one.queue.includes(search) && (state === '' || one.state === state)
    })
    return sorted(wanted, columns, sort)
  }, [queues, search, state, sort])
  return (
    <Page
      title="Queues"
      note={
        queues === undefined
          ? ''
          : `${plural(rows.length, 'queue')}${asOf === undefined ? '' : ', sorted by what hurts unless you choose a column'}`
      }
      curl={{ path: '/api/v1/queues?limit=1000' }}
    >
      <div class="filters">
        <FilterText name="search" label="Name contains" />
        <FilterChoice
          name="state"
          label="State"
          choices={[
            ['', 'all'],
            ['ok', 'ok'],
            ['paused', 'paused'],
            ['held', 'held'],
            ['no_consumers', 'no consumers'],
          ]}
        />
      </div>
      {error === undefined ? null : <Failure error={error} onRetry={readQueues} />}
      {queues === undefined ? (
        error === undefined && <Loading />
      ) : (
        <Table
          label="Queues"
          columns={columns}
          rows={rows}
          keyOf={({ queue }) => queue}
          sort={sort}
          onSort={(key) => setQuery({ sort: key === 'pain' ? undefined : key })}
          onOpen={({ queue }) => goTo(hrefOf('queues', [queue]))}
          rowsMax={20}
          empty={
            queues.length === 0
              ? 'The first push creates a queue: send a message below.'
              : 'No queue matches: clear the filters.'
          }
        />
      )}
      <PushPanel onPushed={readQueues} />
    </Page>
  )
}
