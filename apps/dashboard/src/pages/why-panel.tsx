// Why nothing is delivered, by consumer group, with the action that helps.
import type { ComponentChildren } from 'preact'
import type { WhyAnswer } from '../api/answers.ts'
import { type ApiError, ask, segment } from '../api/client.ts'
import { may } from '../api/session.ts'
import { shownGroup } from '../attention.ts'
import { ActionButton } from '../parts/action.tsx'
import type { Confirmation } from '../parts/confirm.tsx'
import { CopyButton } from '../parts/copy.tsx'
import { withLocalTimes } from '../parts/format.ts'
import { Panel } from '../parts/layout.tsx'
import { Loaded } from '../parts/notice.tsx'
import { hrefOf } from '../shell/router.ts'
import { deletionOfGroup } from './group-actions.ts'

type Reason = WhyAnswer['reasons'][number] & Readonly<Record<string, unknown>>

interface Acting {
  readonly queue: string
  readonly confirm: (confirmation: Confirmation) => void
  readonly onDone: () => void
}

export function WhyPanel({
  data,
  error,
  ...acting
}: Acting & { data: WhyAnswer | undefined; error: ApiError | undefined }) {
  return (
    <Panel title="Why" note="the most likely reason first">
      <Loaded data={data} error={error}>
        {({ reasons }) => (
          <ul class="reasons">
            {urgentFirst(reasons as readonly Reason[]).map((reason) => (
              <li
                key={`${reason.code} ${reason.consumerGroup ?? ''} ${JSON.stringify(reason.partition)}`}
              >
                <div class="reason-head">
                  <strong>{titles[reason.code] ?? reason.code}</strong>
                  {reason.consumerGroup === undefined ? null : (
                    <span class="muted">group {shownGroup(reason.consumerGroup)}</span>
                  )}
                </div>
                <div>{withLocalTimes(reason.text)}</div>
                <div class="actions">
                  <Remedy reason={reason} {...acting} />
                </div>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </Panel>
  )
}

/** Groups that make progress come after those that do not. */
const calm: ReadonlySet<string> = new Set(['ready', 'in_progress', 'empty'])

function urgentFirst(reasons: readonly Reason[]): readonly Reason[] {
  const isCalm = ({ code }: Reason) => Number(calm.has(code))
  return reasons.toSorted((a, b) => isCalm(a) - isCalm(b))
}

const titles: Readonly<Record<string, string>> = {
  database_down: 'PostgreSQL does not answer',
  paused: 'The queue is paused',
  in_flight_limit: 'The limit of running messages is reached',
  rate_limit: 'The rate limit is reached',
  partition_in_flight_limit: 'The limit of running messages per partition is reached',
  partition_rate_limit: 'The rate limit per partition is reached',
  held_lane: 'A failed message holds its partition',
  all_leased: 'All partitions are leased',
  gathering: 'The queue gathers messages',
  retry_later: 'Messages wait for their retry',
  unique_key: 'A unique key is taken',
  no_consumers: 'No consumer',
  ready: 'Ready for delivery',
  in_progress: 'Everything is being processed',
  not_due: 'Nothing is due yet',
  size_limit: 'The queue is full',
  holds_retention: 'The group holds back retention',
  idle_group: 'The group is idle',
  empty: 'The queue is empty',
  dead_letters: 'There are dead letters',
  expired: 'Messages have expired',
  priority: 'Messages with a higher priority come first',
  database_copy: 'The database is a copy',
}

function Remedy({ reason, ...acting }: Acting & { reason: Reason }): ComponentChildren {
  const { queue, onDone, confirm } = acting
  const isAllowed = may('manage', queue)
  const path = `/api/v1/queues/${segment(queue)}`
  switch (reason.code) {
    case 'paused':
      return (
        <ActionButton
          run={() => ask(`${path}/resume`, { method: 'POST' })}
          onDone={onDone}
          isAllowed={isAllowed}
        >
          Resume the queue
        </ActionButton>
      )
    case 'held_lane':
      return <HeldRemedy reason={reason} {...acting} />
    case 'no_consumers':
      return <ConsumerRemedy queue={queue} group={reason.consumerGroup} />
    case 'dead_letters':
      return <a href={hrefOf('dead-letters', [], { queue })}>See the errors, and redrive</a>
    case 'holds_retention':
    case 'idle_group':
      return (
        <button
          type="button"
          class="danger"
          disabled={!isAllowed}
          onClick={() =>
            confirm(deletionOfGroup(queue, shownGroup(reason.consumerGroup ?? 'default')))
          }
        >
          Delete the group …
        </button>
      )
    case 'in_progress':
    case 'all_leased':
      return (
        <a href={hrefOf('messages', [], { queue, state: 'leased' })}>See the running messages</a>
      )
    case 'not_due':
      return (
        <a href={hrefOf('messages', [], { queue, state: 'scheduled' })}>
          See the scheduled messages, and run one now
        </a>
      )
    case 'priority':
      return (
        <a href={hrefOf('messages', [], { queue, state: 'ready' })}>See the messages that wait</a>
      )
    case 'expired':
    case 'retry_later':
      return (
        <a href={hrefOf('messages', [], { queue, state: 'retrying' })}>
          See the messages, and run one now
        </a>
      )
    case 'in_flight_limit':
    case 'rate_limit':
    case 'partition_in_flight_limit':
    case 'partition_rate_limit':
    case 'size_limit':
    case 'gathering':
      return <span class="muted">To change the limit, edit the options below.</span>
    case 'unique_key':
      return typeof reason.messageId === 'string' ? (
        <a href={hrefOf('messages', [reason.messageId])}>See the message</a>
      ) : null
    case 'database_copy':
    case 'database_down':
    case 'empty':
    case 'ready':
      return null
  }
}

function HeldRemedy({ reason, queue, onDone }: Acting & { reason: Reason }) {
  const isAllowed = may('manage', queue)
  const id = typeof reason.messageId === 'string' ? reason.messageId : undefined
  const skip = () =>
    ask(`/api/v1/queues/${segment(queue)}`, {
      method: 'PATCH',
      body: { options: { onFailure: 'skip' } },
    })
  return (
    <>
      {id === undefined ? null : (
        <>
          <a href={hrefOf('messages', [id])}>See the message</a>
          <ActionButton
            run={() => ask(`/api/v1/messages/${id}/run-now`, { method: 'POST' })}
            onDone={onDone}
            isAllowed={isAllowed}
          >
            Run it now
          </ActionButton>
          <ActionButton
            run={() => ask(`/api/v1/messages/${id}`, { method: 'DELETE' })}
            onDone={onDone}
            isAllowed={isAllowed}
          >
            Cancel the message
          </ActionButton>
        </>
      )}
      <ActionButton run={skip} onDone={onDone} isAllowed={isAllowed}>
        Let others overtake (onFailure=skip)
      </ActionButton>
    </>
  )
}

function ConsumerRemedy({ queue, group }: { queue: string; group: string | undefined }) {
  const name = group === undefined ? 'default' : shownGroup(group)
  const ofGroup = name === 'default' ? '' : ` --group '${name.replaceAll("'", "'\\''")}'`
  const command = `rouse pop '${queue.replaceAll("'", "'\\''")}'${ofGroup} --wait 30`
  return (
    <>
      <span>Start a consumer. To take one message by hand:</span>
      <code>{command}</code>
      <CopyButton text={command} />
    </>
  )
}
