import type { AuditAnswer } from '../api/answers.ts'
import { withQuery } from '../api/client.ts'
import { useData } from '../api/use-data.ts'
import { FilterChoice, FilterText } from '../parts/fields.tsx'
import { time } from '../parts/format.ts'
import { Page, State } from '../parts/layout.tsx'
import { Loaded } from '../parts/notice.tsx'
import { Pager } from '../parts/pager.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { useRoute } from '../shell/router.ts'

type Entry = AuditAnswer['entries'][number]

const columns: readonly Column<Entry>[] = [
  { key: 'at', title: 'Time', width: '9rem', cell: ({ at }) => time(at) },
  {
    key: 'outcome',
    title: 'Outcome',
    width: '5rem',
    cell: ({ outcome }) => <State of={outcome} />,
  },
  { key: 'principal', title: 'Who', width: '1fr', cell: ({ principal }) => principal },
  { key: 'verb', title: 'Verb', width: '4.6rem', isExtra: true, cell: ({ verb }) => verb },
  { key: 'target', title: 'Target', width: '1.4fr', cell: ({ target }) => target },
  {
    key: 'detail',
    title: 'Request',
    width: '3fr',
    isExtra: true,
    cell: ({ detail }) => <code title={JSON.stringify(detail)}>{routeOf(detail)}</code>,
  },
  {
    key: 'address',
    title: 'Address',
    width: '7rem',
    isExtra: true,
    cell: ({ address }) => address ?? '',
  },
  { key: 'node', title: 'Node', width: '5rem', isExtra: true, cell: ({ node }) => node },
]

/** The request; entries of the command line have none. */
function routeOf(detail: Entry['detail']): string {
  return typeof detail.route === 'string' ? detail.route : JSON.stringify(detail)
}

const pageSize = 200

export function AuditPage() {
  const { query } = useRoute()
  const { principal, target, outcome, cursor } = query
  const path = withQuery('/api/v1/audit', { principal, target, outcome, limit: pageSize, cursor })
  const audit = useData<AuditAnswer>(path, { everyMs: 5_000 })
  return (
    <Page
      title="Audit"
      note="Who changed the cluster, and who was refused, newest first."
      curl={{ path }}
    >
      <div class="filters">
        <FilterText name="principal" label="Who" />
        <FilterText name="target" label="Target" />
        <FilterChoice
          name="outcome"
          label="Outcome"
          choices={[
            ['', 'all'],
            ['done', 'done'],
            ['failed', 'failed'],
            ['refused', 'refused'],
          ]}
        />
      </div>
      <Loaded {...audit}>
        {(data) => (
          <>
            <Table
              label="Audit"
              things="entries"
              columns={columns}
              rows={data.entries}
              keyOf={({ id }) => id}
              rowsMax={20}
              empty="No entry matches. Every change by an operator and a sample of refused requests is recorded."
            />
            <Pager next={data.cursor} />
          </>
        )}
      </Loaded>
    </Page>
  )
}
