import type { Schedule } from '../api/answers.ts'
import { ask, segment, withQuery } from '../api/client.ts'
import { may } from '../api/session.ts'
import { useData } from '../api/use-data.ts'
import { ActionButton } from '../parts/action.tsx'
import { useConfirm } from '../parts/confirm.tsx'
import { FilterText } from '../parts/fields.tsx'
import { ago, time, until } from '../parts/format.ts'
import { jsonText } from '../parts/json.tsx'
import { Page, State } from '../parts/layout.tsx'
import { Loaded } from '../parts/notice.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { hrefOf, setQuery, useRoute } from '../shell/router.ts'

const pageSize = 200
const exampleCall = `curl -X PUT …/api/v1/schedules/nightly -H 'content-type: application/json' -d '{"queue":"reports","cron":"0 3 * * *"}'`

export function SchedulesPage() {
  const { query } = useRoute()
  const { search = '', cursor } = query
  const path = withQuery('/api/v1/schedules', { limit: pageSize, cursor })
  const schedules = useData<{
    readonly schedules: readonly Schedule[]
    readonly cursor: string | null
  }>(path, {
    isExact: true,
    everyMs: 3_000,
  })
  const { confirm, dialog } = useConfirm(schedules.reload)
  const remove = ({ name, queue }: Schedule) => {
    const call = { path: `/api/v1/schedules/${segment(name)}`, method: 'DELETE' }
    confirm({
      title: 'Delete the schedule',
      action: 'Delete schedule',
      name,
      call,
      run: () => ask(call.path, { method: 'DELETE' }),
      children: <p>No further message is pushed to {queue}. Messages that were pushed stay.</p>,
    })
  }
  return (
    <Page
      title="Schedules"
      note="Messages that are pushed at the times of a cron pattern."
      curl={{ path }}
    >
      <div class="filters">
        <FilterText name="search" label="Name or queue contains" />
      </div>
      <Loaded {...schedules}>
        {(data) => (
          <>
            <Table
              label="Schedules"
              columns={columnsOf(schedules.reload, remove)}
              rows={data.schedules.filter((one) => `${one.name} ${one.queue}`.includes(search))}
              keyOf={({ name }) => name}
              empty={
                <>
                  Create one: <code>{exampleCall}</code>
                </>
              }
            />
            {data.cursor === null ? null : (
              <button type="button" onClick={() => setQuery({ cursor: data.cursor ?? undefined })}>
                Next page
              </button>
            )}
          </>
        )}
      </Loaded>
      {dialog}
    </Page>
  )
}

function columnsOf(
  reload: () => void,
  remove: (schedule: Schedule) => void,
): readonly Column<Schedule>[] {
  return [
    {
      key: 'name',
      title: 'Name',
      width: '1.5fr',
      cell: ({ name }) => <span title={name}>{name}</span>,
    },
    {
      key: 'queue',
      title: 'Queue',
      width: '1fr',
      isExtra: true,
      cell: ({ queue }) => <a href={hrefOf('queues', [queue])}>{queue}</a>,
    },
    {
      key: 'cron',
      title: 'Cron',
      width: '1.5fr',
      isExtra: true,
      cell: ({ cron, timeZone }) => (
        <code>
          {cron} {timeZone}
        </code>
      ),
    },
    {
      key: 'next',
      title: 'Next run',
      width: '8rem',
      cell: ({ nextAt, paused }) =>
        paused ? <State of="paused" /> : <span title={time(nextAt)}>{until(nextAt)}</span>,
    },
    {
      key: 'last',
      title: 'Last run',
      width: '8rem',
      isExtra: true,
      cell: ({ lastAt }) => ago(lastAt),
    },
    {
      key: 'actions',
      title: '',
      width: '10rem',
      narrowWidth: '9.4rem',
      cell: (schedule) => (
        <span class="actions">
          <ActionButton
            kind="small"
            run={() => runNow(schedule)}
            onDone={reload}
            isAllowed={may('push', schedule.queue)}
            needs={`push:${schedule.queue}`}
          >
            Run now
          </ActionButton>
          <button
            type="button"
            class="small danger"
            disabled={!may('manage', schedule.queue)}
            onClick={() => remove(schedule)}
          >
            Delete …
          </button>
        </span>
      ),
    },
  ]
}

/** Pushes the message of the schedule, in addition to its own times. */
function runNow({ name, queue, partition, payload, headers }: Schedule): Promise<unknown> {
  const item = {
    queue,
    ...(partition === null ? {} : { partition }),
    headers: { ...headers, schedule: name },
    payload,
  }
  return ask('/api/v1/push', { method: 'POST', bodyText: `{"items":[${jsonText(item)}]}` })
}
