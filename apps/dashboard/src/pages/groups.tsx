import { useMemo } from 'preact/hooks'
import type { GroupFigures } from '../api/answers.ts'
import { withQuery } from '../api/client.ts'
import { may } from '../api/session.ts'
import { useCluster } from '../api/use-cluster.ts'
import { useData } from '../api/use-data.ts'
import { shownGroup } from '../attention.ts'
import { useConfirm } from '../parts/confirm.tsx'
import { FilterText } from '../parts/fields.tsx'
import { ago, count, duration, plural, time } from '../parts/format.ts'
import { Page, Panel } from '../parts/layout.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { type Column, sorted, Table } from '../parts/table.tsx'
import { goTo, hrefOf, setQuery, useRoute } from '../shell/router.ts'
import { BackoffPanel } from './backoff.tsx'
import { deletionOfGroup, seekOfGroup } from './group-actions.ts'
import { LeasesPanel } from './leases.tsx'

const columns: readonly Column<GroupFigures>[] = [
  {
    key: 'group',
    title: 'Group',
    width: '1.5fr',
    cell: ({ consumerGroup, queue }) => (
      <a href={hrefOf('groups', [], { queue, group: consumerGroup })}>{consumerGroup}</a>
    ),
    sortBy: ({ consumerGroup }) => consumerGroup,
  },
  {
    key: 'queue',
    title: 'Queue',
    width: '1.5fr',
    cell: ({ queue }) => <a href={hrefOf('queues', [queue])}>{queue}</a>,
    sortBy: ({ queue }) => queue,
  },
  number('ready', 'Behind', ({ ready }) => ready),
  number('leased', 'Running', ({ leased }) => leased),
  number('retrying', 'Retrying', ({ retrying }) => retrying, true),
  number('dead', 'Dead', ({ dead }) => dead, true),
  {
    key: 'oldest',
    title: 'Oldest',
    width: '7rem',
    isNumber: true,
    isExtra: true,
    cell: ({ oldestAgeMs }) => duration(oldestAgeMs),
    sortBy: ({ oldestAgeMs }) => oldestAgeMs ?? -1,
  },
  {
    key: 'seen',
    title: 'Last request',
    width: '9rem',
    isNumber: true,
    isExtra: true,
    cell: ({ lastSeenAt }) => ago(lastSeenAt),
    sortBy: ({ lastSeenAt }) => -Date.parse(lastSeenAt),
  },
]

function number(
  key: string,
  title: string,
  pick: (row: GroupFigures) => number,
  isExtra = false,
): Column<GroupFigures> {
  return {
    key,
    title,
    width: '5rem',
    isNumber: true,
    isExtra,
    cell: (row) => count(pick(row)),
    sortBy: pick,
  }
}

const pageSize = 500

export function GroupsPage() {
  const { query } = useRoute()
  const { queue = '', group = '', sort = 'ready', cursor } = query
  const path = withQuery('/api/v1/groups', { limit: pageSize, cursor })
  const groups = useData<{
    readonly groups: readonly GroupFigures[]
    readonly cursor: string | null
  }>(path, {
    everyMs: 3_000,
  })
  const rows = useMemo(() => {
    const wanted = (groups.data?.groups ?? []).filter((one) => {
      return (queue === '' || one.queue === queue) && one.consumerGroup.includes(group)
    })
    return sorted(wanted, columns, sort)
  }, [groups.data, queue, group, sort])
  const chosen =
    queue === '' || group === '' ? undefined : rows.find((one) => one.consumerGroup === group)
  return (
    <Page
      title="Groups"
      note="Every consumer group of a queue gets each message once."
      curl={{ path }}
    >
      <div class="filters">
        <FilterText name="queue" label="Queue" />
        <FilterText name="group" label="Group" />
      </div>
      <Loaded {...groups}>
        {(data) => (
          <>
            <Table
              label="Groups"
              columns={columns}
              rows={rows}
              keyOf={(one) => JSON.stringify([one.queue, one.consumerGroup])}
              sort={sort}
              onSort={(key) => setQuery({ sort: key })}
              onOpen={(one) =>
                goTo(hrefOf('groups', [], { queue: one.queue, group: one.consumerGroup }))
              }
              rowsMax={12}
              empty="A group appears with its first pop."
            />
            {data.cursor === null ? null : (
              <button type="button" onClick={() => setQuery({ cursor: data.cursor ?? undefined })}>
                Next page
              </button>
            )}
          </>
        )}
      </Loaded>
      {chosen === undefined ? null : <GroupPanel figures={chosen} onDone={groups.reload} />}
      <RetentionPanel />
      <BackoffPanel />
    </Page>
  )
}

function GroupPanel({ figures, onDone }: { figures: GroupFigures; onDone: () => void }) {
  const { queue, consumerGroup } = figures
  const { confirm, dialog } = useConfirm(onDone)
  const isAllowed = may('manage', queue)
  return (
    <>
      <Panel
        title={`Group ${consumerGroup} of queue ${queue}`}
        note={`${plural(figures.ready, 'message')} behind, last request ${ago(figures.lastSeenAt)}`}
        actions={
          <>
            <button
              type="button"
              class="small"
              disabled={!isAllowed}
              onClick={() => confirm(seekOfGroup(queue, consumerGroup))}
            >
              Seek to the end …
            </button>
            <button
              type="button"
              class="small danger"
              disabled={!isAllowed}
              onClick={() => confirm(deletionOfGroup(queue, consumerGroup))}
            >
              Delete group …
            </button>
          </>
        }
      >
        <LeasesPanel queue={queue} group={consumerGroup} />
      </Panel>
      {dialog}
    </>
  )
}

function RetentionPanel() {
  const { data } = useCluster()
  const held = new Map(
    (data?.nodes ?? []).flatMap(({ retention }) =>
      retention.held_by.map((one) => [`${one.queue} ${one.consumerGroup}`, one] as const),
    ),
  )
  return (
    <Panel
      title="Retention held back"
      note="by groups that have made no request for a day or longer"
    >
      {held.size === 0 ? (
        <Empty title="No group holds back retention." />
      ) : (
        <ul class="attention">
          {[...held.values()].map((one) => (
            <li key={`${one.queue} ${one.consumerGroup}`} class="warn">
              <span>
                Group “{shownGroup(one.consumerGroup)}” of queue “{one.queue}” keeps{' '}
                {one.isPartial ? 'at least ' : ''}
                {plural(one.messages, 'message')}, the oldest of {time(one.oldestAt)}. Its last
                request was {ago(one.lastSeenAt)}. If it is not needed, delete the group.
              </span>
              <a
                href={hrefOf('groups', [], {
                  queue: one.queue,
                  group: shownGroup(one.consumerGroup),
                })}
              >
                Open the group
              </a>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}
