import { useMemo } from 'preact/hooks'
import { segment } from '../api/client.ts'
import { useData } from '../api/use-data.ts'
import { shownGroup } from '../attention.ts'
import { FilterText } from '../parts/fields.tsx'
import { count, duration } from '../parts/format.ts'
import { Panel } from '../parts/layout.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { hrefOf, useRoute } from '../shell/router.ts'

interface Position {
  readonly partition: string | null
  readonly offsetLag: number
  readonly timeLagSeconds: number
  readonly leaseActive: boolean
}

interface Resource {
  readonly groups: readonly { readonly consumerGroup: string }[]
}

type Positions = Readonly<Record<string, { readonly partitions: readonly Position[] }>>

const columns: readonly Column<Position>[] = [
  {
    key: 'partition',
    title: 'Partition',
    width: '2fr',
    cell: ({ partition }) => partition ?? '(independent messages)',
  },
  {
    key: 'lag',
    title: 'Waiting',
    width: '6rem',
    isNumber: true,
    cell: ({ offsetLag }) => count(offsetLag),
  },
  {
    key: 'age',
    title: 'Oldest',
    width: '8rem',
    isNumber: true,
    cell: ({ timeLagSeconds, offsetLag }) =>
      offsetLag === 0 ? '–' : duration(timeLagSeconds * 1_000),
  },
  {
    key: 'leased',
    title: 'Leased',
    width: '5rem',
    cell: ({ leaseActive }) => (leaseActive ? 'yes' : ''),
  },
]

/** The partitions of a queue, as one of its groups sees them. */
export function PartitionsPanel({ queue }: { queue: string }) {
  const { query } = useRoute()
  const group = query.group === undefined || query.group === '' ? 'default' : query.group
  const resource = useData<Resource>(`/api/v1/resources/queues/${segment(queue)}`, {
    everyMs: 5_000,
  })
  // A group that has not asked for messages has no positions: asking for them would be 404.
  const isKnown = resource.data?.groups.some((one) => shownGroup(one.consumerGroup) === group)
  const { data, error } = useData<Positions>(
    isKnown === true ? `/api/v1/consumer-groups/${segment(group)}` : undefined,
    { everyMs: 5_000 },
  )
  const rows = useMemo(
    () =>
      [...(data?.[queue]?.partitions ?? [])].toSorted(
        (a, b) => b.timeLagSeconds - a.timeLagSeconds,
      ),
    [data, queue],
  )
  return (
    <Panel
      title="Partitions"
      note={`for group ${group}, furthest behind first`}
      actions={<FilterText name="group" label="Group" placeholder="default" />}
    >
      {error !== undefined && error.status !== 404 ? (
        <p class="muted">{error.message}</p>
      ) : (
        <Table
          label="Partitions"
          columns={columns}
          rows={rows}
          keyOf={({ partition }) => partition ?? ''}
          rowsMax={8}
          empty={
            <>
              Group {group} has not asked for messages of this queue.{' '}
              <a href={hrefOf('groups', [], { queue })}>See its groups</a>.
            </>
          }
        />
      )}
    </Panel>
  )
}
