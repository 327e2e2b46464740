import { useState } from 'preact/hooks'
import type { MessagesAnswer } from '../api/answers.ts'
import { ask, withQuery } from '../api/client.ts'
import { may } from '../api/session.ts'
import { useData } from '../api/use-data.ts'
import { type Confirmation, useConfirm } from '../parts/confirm.tsx'
import { FilterChoice, FilterText } from '../parts/fields.tsx'
import { plural, time } from '../parts/format.ts'
import { Page, State } from '../parts/layout.tsx'
import { Empty, Loaded } from '../parts/notice.tsx'
import { Pager } from '../parts/pager.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { goTo, hrefOf, useRoute } from '../shell/router.ts'

type Message = MessagesAnswer['messages'][number]

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const pageSize = 100
const previewMax = 120

const columns: readonly Column<Message>[] = [
  { key: 'at', title: 'Created', width: '9rem', cell: ({ createdAt }) => time(createdAt) },
  {
    key: 'state',
    title: 'State',
    width: '6.5rem',
    narrowWidth: '5.2rem',
    cell: ({ state }) => (state === undefined ? '' : <State of={state} />),
  },
  {
    key: 'partition',
    title: 'Partition',
    width: '1fr',
    isExtra: true,
    cell: ({ partition }) => partition ?? '',
  },
  {
    key: 'id',
    title: 'Id',
    width: '16.6rem',
    narrowWidth: '1fr',
    cell: ({ id }) => (
      <a class="mono" href={hrefOf('messages', [id])}>
        {id}
      </a>
    ),
  },
  {
    key: 'data',
    title: 'Payload',
    width: '2fr',
    isExtra: true,
    cell: ({ data }) => <code>{JSON.stringify(data)?.slice(0, previewMax)}</code>,
  },
]

const states = [
  'ready',
  'leased',
  'retrying',
  'scheduled',
  'dead',
  'completed',
  'cancelled',
] as const
const cancellable: readonly string[] = ['ready', 'retrying', 'scheduled']

export function MessagesPage() {
  const { query } = useRoute()
  const { queue = '', state = '', partition = '', group = '', cursor } = query
  const error = query.error ?? ''
  const path =
    queue === ''
      ? undefined
      : withQuery('/api/v1/messages', {
          queue,
          state,
          partition,
          consumerGroup: group,
          limit: pageSize,
          cursor,
        })
  const found = useData<MessagesAnswer>(error === '' ? path : undefined, {
    isExact: true,
    everyMs: 5_000,
  })
  const { confirm, dialog } = useConfirm(found.reload)
  const isCancellable = cancellable.includes(state) && queue !== '' && may('manage', queue)
  return (
    <Page
      title="Messages"
      note="Find a message by its id, or list those of a queue."
      curl={{ path: path ?? '/api/v1/messages/ID' }}
      actions={
        <button
          type="button"
          disabled={!isCancellable}
          title={
            isCancellable ? undefined : 'Choose a queue, and the state ready, retrying or scheduled'
          }
          onClick={() => confirm(cancellationOf(query))}
        >
          Cancel all that match …
        </button>
      }
    >
      <FindById />
      <div class="filters">
        <FilterText name="queue" label="Queue" />
        <FilterChoice
          name="state"
          label="State"
          choices={[['', 'all'], ...states.map((one) => [one, one] as const)]}
        />
        <FilterText name="partition" label="Partition" />
        <FilterText name="group" label="Group" placeholder="default" />
        <FilterText name="error" label="Error code" />
      </div>
      {error === '' ? (
        <Found queue={queue} found={found} />
      ) : (
        <Empty title="Messages that failed for good are dead letters">
          <a href={hrefOf('dead-letters', [], { queue, errorCode: error })}>
            Dead letters with the error {error}
          </a>
        </Empty>
      )}
      {dialog}
    </Page>
  )
}

function Found({
  queue,
  found,
}: {
  queue: string
  found: ReturnType<typeof useData<MessagesAnswer>>
}) {
  if (queue === '')
    return (
      <Empty title="Choose a queue">Type its name above, or open it from the list of queues.</Empty>
    )
  return (
    <Loaded {...found}>
      {({ messages, cursor: next }) => (
        <>
          <Table
            label="Messages"
            columns={columns}
            rows={messages}
            keyOf={({ id }) => id}
            onOpen={({ id }) => goTo(hrefOf('messages', [id]))}
            empty="No message matches. Completed messages are kept for the retention time of the queue."
          />
          <Pager next={next} />
        </>
      )}
    </Loaded>
  )
}

function FindById() {
  const [id, setId] = useState('')
  const isId = uuid.test(id.trim())
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault()
        if (isId) goTo(hrefOf('messages', [id.trim().toLowerCase()]))
      }}
    >
      <label class="field wide">
        <span>Message id</span>
        <input
          name="message-id"
          class="mono"
          value={id}
          placeholder="019aa7c4-9b3f-7c11-8f52-6a1f0c9d2e10"
          onInput={(event) => setId(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="primary" disabled={!isId}>
        Find
      </button>
    </form>
  )
}

interface CancelStep {
  readonly matched: number
  readonly cancelled: number
  readonly cursor: string | null
}

const stepsMax = 1_000

function cancellationOf(query: Readonly<Record<string, string>>): Confirmation {
  const { queue = '', state = '', partition = '', group = '' } = query
  const filter = { queue, state, partition, consumerGroup: group }
  const all = async (dryRun: boolean) => {
    let cursor: string | null = null
    let matched = 0
    for (let step = 0; step < stepsMax; step += 1) {
      const path = withQuery('/api/v1/messages', { ...filter, dryRun: dryRun || undefined, cursor })
      const answer: CancelStep = await ask(path, { method: 'DELETE' })
      matched += answer.matched
      cursor = answer.cursor
      if (cursor === null) break
    }
    return matched
  }
  return {
    title: `Cancel all ${state} messages that match`,
    action: 'Cancel messages',
    name: queue,
    call: { path: withQuery('/api/v1/messages', filter), method: 'DELETE' },
    dryRun: async () =>
      `${plural(await all(true), 'message')} match now: all pages, not only the visible one.`,
    run: () => all(false),
  }
}
