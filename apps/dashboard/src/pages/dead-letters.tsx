import { useState } from 'preact/hooks'
import type { ErrorGroup, Letter } from '../api/answers.ts'
import { ask, withQuery } from '../api/client.ts'
import { may } from '../api/session.ts'
import { useData } from '../api/use-data.ts'
import { type Confirmation, useConfirm } from '../parts/confirm.tsx'
import { FilterText } from '../parts/fields.tsx'
import { ago, count, plural, time } from '../parts/format.ts'
import { Json } from '../parts/json.tsx'
import { Page, Panel } from '../parts/layout.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { Pager } from '../parts/pager.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { hrefOf, useRoute } from '../shell/router.ts'
import { filterOf, RedrivePanel } from './redrive.tsx'

export function DeadLettersPage() {
  const { query } = useRoute()
  const { queue = '', group = '' } = query
  const path = withQuery('/api/v1/dead-letters/errors', { queue, consumerGroup: group, limit: 200 })
  const errors = useData<{ readonly errors: readonly ErrorGroup[] }>(path, { everyMs: 3_000 })
  return (
    <Page
      title="Dead letters"
      note="Messages that failed too often, grouped by error. Choose an error to see its messages and to redrive them."
      curl={{ path }}
    >
      <div class="filters">
        <FilterText name="queue" label="Queue" />
        <FilterText name="group" label="Group" />
        <FilterText name="errorCode" label="Error code" />
        <FilterText name="errorMessage" label="Error message" />
      </div>
      <Loaded {...errors}>{(data) => <ErrorTable errors={data.errors} />}</Loaded>
      {queue === '' ? null : (
        <>
          <RedrivePanel
            key={JSON.stringify(filterOf(query))}
            filter={filterOf(query)}
            onDone={errors.reload}
          />
          <Letters onDone={errors.reload} />
        </>
      )}
    </Page>
  )
}

const columns: readonly Column<ErrorGroup>[] = [
  {
    key: 'error',
    title: 'Error',
    width: '2fr',
    cell: (one) => (
      <a href={hrefOf('dead-letters', [], queryOf(one))} title={one.errorMessage ?? undefined}>
        {one.errorCode ?? one.errorMessage ?? 'without an error'}
      </a>
    ),
  },
  { key: 'queue', title: 'Queue', width: '1fr', cell: ({ queue }) => queue },
  {
    key: 'group',
    title: 'Group',
    width: '1fr',
    isExtra: true,
    cell: ({ consumerGroup }) => consumerGroup,
  },
  {
    key: 'count',
    title: 'Messages',
    width: '6rem',
    isNumber: true,
    cell: (one) => count(one.count),
  },
  {
    key: 'last',
    title: 'Last',
    width: '8rem',
    isNumber: true,
    cell: ({ lastFailedAt }) => ago(lastFailedAt),
  },
  {
    key: 'first',
    title: 'First',
    width: '8rem',
    isNumber: true,
    isExtra: true,
    cell: ({ firstFailedAt }) => ago(firstFailedAt),
  },
]

function queryOf({ queue, consumerGroup, errorCode, errorMessage }: ErrorGroup) {
  return {
    queue,
    group: consumerGroup,
    ...(errorCode === null ? { errorMessage: errorMessage ?? undefined } : { errorCode }),
  }
}

function ErrorTable({ errors }: { errors: readonly ErrorGroup[] }) {
  return (
    <Table
      label="Errors"
      columns={columns}
      rows={errors}
      keyOf={(one) =>
        JSON.stringify([one.queue, one.consumerGroup, one.errorCode, one.errorMessage])
      }
      rowsMax={10}
      empty="No message has failed for good. A message becomes a dead letter when its retries are used up."
    />
  )
}

const pageSize = 50

function Letters({ onDone }: { onDone: () => void }) {
  const { query } = useRoute()
  const { queue, ...where } = filterOf(query)
  const { cursor } = query
  const path = withQuery('/api/v1/dead-letters', { queue, ...where, limit: pageSize, cursor })
  const letters = useData<{
    readonly deadLetters: readonly Letter[]
    readonly cursor: string | null
  }>(path, {
    isExact: true,
    everyMs: 5_000,
  })
  const { confirm, dialog } = useConfirm(() => {
    letters.reload()
    onDone()
  })
  return (
    <Panel
      title="Messages"
      note="newest first"
      actions={
        <button
          type="button"
          class="danger small"
          disabled={!may('manage', queue)}
          onClick={() => confirm(deletionOf({ queue, ...where }))}
        >
          Delete all that match …
        </button>
      }
    >
      <Loaded {...letters}>
        {(data) => (
          <>
            {data.deadLetters.length === 0 ? (
              <Empty title="No dead letter matches">
                Clear the filters, or wait: a redrive has moved them.
              </Empty>
            ) : (
              data.deadLetters.map((letter) => <LetterRow key={letter.letterId} letter={letter} />)
            )}
            <Pager next={data.cursor} />
          </>
        )}
      </Loaded>
      {dialog}
    </Panel>
  )
}

function deletionOf(
  filter: Readonly<Record<string, string | undefined>> & { readonly queue: string },
): Confirmation {
  const { queue, ...where } = filter
  const path = withQuery('/api/v1/dead-letters', filter)
  return {
    title: 'Delete dead letters',
    action: 'Delete',
    name: queue,
    call: { path, method: 'DELETE' },
    dryRun: async () => {
      const body = { queue, where, dryRun: true }
      const { total } = await ask<{ readonly total: number }>('/api/v1/dead-letters/redrives', {
        method: 'POST',
        body,
      })
      return `${plural(total, 'dead letter')} will be deleted for good.`
    },
    run: () => ask(path, { method: 'DELETE' }),
  }
}

function LetterRow({ letter }: { letter: Letter }) {
  const [isOpen, setIsOpen] = useState(false)
  const { id, consumerGroup, partition, errorCode, errorMessage, attempts, failedAt, history } =
    letter
  return (
    <details class="letter" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        <time>{time(failedAt)}</time>
        <strong>{errorCode ?? ''}</strong>
        <span class="clip">{errorMessage ?? ''}</span>
        <span class="muted">
          {plural(attempts, 'attempt')}, group {consumerGroup}
          {partition === null ? '' : `, partition ${partition}`}
        </span>
      </summary>
      {isOpen ? (
        <>
          <p>
            <a class="mono" href={hrefOf('messages', [id])}>
              {id}
            </a>
          </p>
          <ol class="timeline">
            {history.map((one) => (
              <li key={`${one.attempt} ${one.endedAt}`}>
                <time>{time(one.endedAt)}</time>
                <span class="number">#{one.attempt}</span>
                <span>
                  {one.outcome} {one.errorCode} {one.errorMessage}{' '}
                  {one.consumer === null ? '' : `(${one.consumer})`}
                </span>
              </li>
            ))}
          </ol>
          <Json value={letter.data} label="Payload" />
        </>
      ) : null}
    </details>
  )
}
