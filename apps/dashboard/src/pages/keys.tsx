import { useState } from 'preact/hooks'
import type { Key } from '../api/answers.ts'
import { type ApiError, ask, segment } from '../api/client.ts'
import { session, signIn } from '../api/session.ts'
import { useStore } from '../api/store.ts'
import { useData } from '../api/use-data.ts'
import { nowMs } from '../clock.ts'
import { useConfirm } from '../parts/confirm.tsx'
import { CopyButton } from '../parts/copy.tsx'
import { Curl } from '../parts/curl.tsx'
import { Field, FilterText } from '../parts/fields.tsx'
import { time } from '../parts/format.ts'
import { Page, Panel, State } from '../parts/layout.tsx'
import { Failure, Loaded } from '../parts/notice.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { useRoute } from '../shell/router.ts'

const path = '/api/v1/keys'

export function KeysPage() {
  const { query } = useRoute()
  const { search = '' } = query
  const keys = useData<{ readonly keys: readonly Key[] }>(path, { everyMs: 5_000 })
  const { confirm, dialog } = useConfirm(keys.reload)
  const revoke = ({ id, name }: Key) => {
    const call = { path: `${path}/${segment(id)}`, method: 'DELETE' }
    confirm({
      title: `Revoke the key ${id}`,
      action: 'Revoke key',
      name,
      call,
      run: () => ask(call.path, { method: 'DELETE' }),
      children: <p>Requests and sessions with this key end within ten seconds, on every node.</p>,
    })
  }
  return (
    <Page
      title="Keys"
      note="Who may do what. A key is shown once, when it is created."
      curl={{ path }}
    >
      <div class="filters">
        <FilterText name="search" label="Name or grant contains" />
      </div>
      <Loaded {...keys}>
        {(data) => (
          <Table
            label="Keys"
            columns={columnsOf(revoke)}
            rows={data.keys.filter((one) =>
              `${one.name} ${one.id} ${one.grants.join(' ')}`.includes(search),
            )}
            keyOf={({ id }) => id}
            rowsMax={12}
            empty="There is no key. The first key closes the cluster to requests without one."
          />
        )}
      </Loaded>
      <NewKeyPanel hasKeys={keys.data?.keys.length !== 0} onDone={keys.reload} />
      {dialog}
    </Page>
  )
}

function columnsOf(revoke: (key: Key) => void): readonly Column<Key>[] {
  return [
    { key: 'name', title: 'Name', width: '1fr', cell: ({ name }) => name },
    { key: 'id', title: 'Id', width: '9rem', isExtra: true, cell: ({ id }) => <code>{id}</code> },
    {
      key: 'grants',
      title: 'Grants',
      width: '2fr',
      cell: ({ grants }) => <span title={grants.join('\n')}>{grants.join(', ')}</span>,
    },
    { key: 'state', title: 'State', width: '6rem', cell: (key) => <State of={stateOf(key)} /> },
    {
      key: 'used',
      title: 'Last used',
      width: '7rem',
      isExtra: true,
      cell: ({ lastUsedDay }) => lastUsedDay ?? 'never',
    },
    {
      key: 'created',
      title: 'Created',
      width: '10rem',
      isExtra: true,
      cell: ({ createdAt }) => time(createdAt),
    },
    {
      key: 'actions',
      title: '',
      width: '6rem',
      cell: (key) =>
        stateOf(key) === 'ok' ? (
          <button type="button" class="small danger" onClick={() => revoke(key)}>
            Revoke …
          </button>
        ) : null,
    },
  ]
}

function stateOf({ revokedAt, expiresAt }: Key): string {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs() ? 'expired' : 'ok'
}

const presets = ['viewer', 'producer', 'worker', 'operator', 'admin'] as const

function NewKeyPanel({ hasKeys, onDone }: { hasKeys: boolean; onDone: () => void }) {
  const [name, setName] = useState('')
  const [chosen, setPreset] = useState<string>('viewer')
  const [queue, setQueue] = useState('')
  const [made, setMade] = useState<string>()
  const current = useStore(session)
  // The first key closes the cluster: another preset would lock everyone out.
  const isFirst = current?.isOpen === true && !hasKeys
  const preset = isFirst ? 'admin' : chosen
  const [error, setError] = useState<ApiError>()
  const body = { name, preset, ...(queue === '' || preset === 'admin' ? {} : { queue }) }
  const submit = async (event: Event) => {
    event.preventDefault()
    try {
      const { key } = await ask<{ readonly key: string }>(path, { method: 'POST', body })
      setMade(key)
      // From now on requests need it, also those of this page.
      if (isFirst) await signIn(key)
      setError(undefined)
      onDone()
    } catch (failed) {
      setError(failed as ApiError)
    }
  }
  return (
    <Panel title="Create a key">
      <form class="filters" onSubmit={(event) => void submit(event)}>
        <Field label="Name">
          <input
            name="key-name"
            value={name}
            required
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </Field>
        <Field label="Preset">
          <select
            value={preset}
            disabled={isFirst}
            onChange={(event) => setPreset(event.currentTarget.value)}
          >
            {presets.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </Field>
        <Field label="Queues (a name, or a prefix with *)">
          <input
            value={queue}
            placeholder="*"
            disabled={preset === 'admin'}
            onInput={(event) => setQueue(event.currentTarget.value)}
          />
        </Field>
        <button type="submit" class="primary">
          Create
        </button>
      </form>
      {isFirst ? (
        <p class="muted">
          This is the first key, so it gets all grants. It closes the cluster: from then on every
          request needs a key.
        </p>
      ) : null}
      {made === undefined ? null : (
        <p class="effect" role="status">
          This is the only time the key is shown: <code>{made}</code> <CopyButton text={made} />
        </p>
      )}
      {error === undefined ? null : <Failure error={error} />}
      <Curl path={path} method="POST" body={body} />
    </Panel>
  )
}
