import { useState } from 'preact/hooks'
import type { MessageByIdAnswer } from '../api/answers.ts'
import { ask, segment } from '../api/client.ts'
import { may } from '../api/session.ts'
import { useData } from '../api/use-data.ts'
import { ActionButton } from '../parts/action.tsx'
import { useConfirm } from '../parts/confirm.tsx'
import { Facts } from '../parts/fields.tsx'
import { ago, duration, time, until } from '../parts/format.ts'
import { Json, jsonText } from '../parts/json.tsx'
import { Page, Panel, State } from '../parts/layout.tsx'
import { Loaded } from '../parts/notice.tsx'
import { hrefOf } from '../shell/router.ts'
import { MessageWhyPanel } from './message-why.tsx'
import { PushPanel } from './push-panel.tsx'

export function MessagePage({ id }: { id: string }) {
  const path = `/api/v1/messages/${segment(id)}`
  const message = useData<MessageByIdAnswer>(path, { isExact: true })
  const [isResending, setIsResending] = useState(false)
  const { confirm, dialog } = useConfirm(message.reload)
  const { data } = message
  return (
    <Page
      title="Message"
      note={<code>{id}</code>}
      curl={{ path }}
      actions={
        data === undefined ? null : (
          <Actions
            message={data}
            onDone={message.reload}
            onResend={() => setIsResending(true)}
            onCancel={() =>
              confirm({
                title: 'Cancel the message',
                action: 'Cancel message',
                call: { path, method: 'DELETE' },
                run: () => ask(path, { method: 'DELETE' }),
                children: <p>It will not be delivered to any group.</p>,
              })
            }
          />
        )
      }
    >
      <Loaded {...message}>{(found) => <Details message={found} />}</Loaded>
      {data === undefined ? null : <MessageWhyPanel id={id} message={data} />}
      {isResending && data !== undefined ? (
        <PushPanel
          title="Send again, as a new message"
          queue={data.queue}
          partition={data.partition ?? ''}
          payload={jsonText(data.data)}
          onPushed={message.reload}
        />
      ) : null}
      {dialog}
    </Page>
  )
}

/** Only what the state of the message allows. */
function Actions({
  message,
  onDone,
  onCancel,
  onResend,
}: {
  message: MessageByIdAnswer
  onDone: () => void
  onCancel: () => void
  onResend: () => void
}) {
  const { id, queue, state } = message
  const isAllowed = may('manage', queue)
  const canRun = state === 'scheduled' || state === 'retrying'
  const canCancel = canRun || state === 'ready'
  return (
    <>
      {canRun ? (
        <ActionButton
          run={() => ask(`/api/v1/messages/${segment(id)}/run-now`, { method: 'POST' })}
          onDone={onDone}
          isAllowed={isAllowed}
        >
          Run now
        </ActionButton>
      ) : null}
      {canCancel ? (
        <button type="button" disabled={!isAllowed} onClick={onCancel}>
          Cancel …
        </button>
      ) : null}
      {state === 'dead' ? <a href={hrefOf('dead-letters', [], { queue })}>Redrive</a> : null}
      <button type="button" disabled={!may('push', queue)} onClick={onResend}>
        Send again …
      </button>
    </>
  )
}

function Details({ message }: { message: MessageByIdAnswer }) {
  const { queue, state, partition, createdAt, dueAt, keptUntil, transactionId, headers } = message
  return (
    <>
      <Panel title="State">
        <Facts
          facts={[
            ['State', <State key="state" of={state} />],
            [
              'Queue',
              <a key="queue" href={hrefOf('queues', [queue])}>
                {queue}
              </a>,
            ],
            ['Partition', partition ?? 'none: independent of other messages'],
            ['Created', `${time(createdAt)} (${ago(createdAt)})`],
            ['Due', dueAt === null ? 'at once' : `${time(dueAt)} (${until(dueAt)})`],
            ['Kept until', time(keptUntil)],
            ['Transaction id', <code key="transaction">{transactionId}</code>],
          ]}
        />
      </Panel>
      <GroupsPanel message={message} />
      <Panel title="Payload">
        <Json value={message.data} label="Payload" />
        {headers === null ? null : (
          <>
            <h3>Headers</h3>
            <Json value={headers} label="Headers" />
          </>
        )}
      </Panel>
    </>
  )
}

/** What happened to the message, oldest first, for each consumer group. */
function GroupsPanel({ message: { groups, attempts, createdAt } }: { message: MessageByIdAnswer }) {
  const events = [
    { at: createdAt, text: 'Pushed' },
    ...attempts.flatMap((one) => [
      ...(one.deliveredAt === null
        ? []
        : [
            {
              at: one.deliveredAt,
              text: `Attempt ${one.attempt} of group ${one.consumerGroup}: delivered to ${whoOf(one)}`,
            },
          ]),
      {
        at: one.endedAt,
        text: `Attempt ${one.attempt} of group ${one.consumerGroup}: ${one.outcome}${errorOf(one)}`,
      },
    ]),
    ...groups.flatMap((one) => {
      if (one.state === 'leased' && one.deliveredAt !== null) {
        return [
          {
            at: one.deliveredAt,
            text: `Attempt ${one.attempts} of group ${one.consumerGroup}: held by ${whoOf(one)}, lease ${until(one.leaseExpiresAt)}`,
          },
        ]
      }
      return one.nextTryAt === null
        ? []
        : [{ at: one.nextTryAt, text: `Next attempt of group ${one.consumerGroup}` }]
    }),
  ].toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))
  const startMs = Date.parse(createdAt)
  return (
    <Panel
      title="Timeline"
      note={groups.map((one) => `${one.consumerGroup}: ${one.state}`).join(', ')}
    >
      <ol class="timeline">
        {events.map(({ at, text }, i) => (
          <li key={`${at} ${i}`}>
            <time>{time(at)}</time>
            <span class="number">+{duration(Date.parse(at) - startMs)}</span>
            <span>{text}</span>
          </li>
        ))}
      </ol>
    </Panel>
  )
}

function whoOf({ holder, consumer }: { holder: string | null; consumer: string | null }): string {
  return consumer === null ? (holder ?? 'a consumer') : `${consumer} through ${holder ?? 'a node'}`
}

function errorOf({
  errorCode,
  errorMessage,
}: {
  errorCode: string | null
  errorMessage: string | null
}): string {
  const text = [errorCode, errorMessage].filter((one) => one !== null).join(' ')
  return text === '' ? '' : ` (${text})`
}
