import { useState } from 'preact/hooks'
import { type ApiError, ask } from '../api/client.ts'
import { may } from '../api/session.ts'
import { Curl } from '../parts/curl.tsx'
import { Field } from '../parts/fields.tsx'
import { Panel } from '../parts/layout.tsx'
import { Failure } from '../parts/notice.tsx'
import { hrefOf } from '../shell/router.ts'

/** Sends one message. The payload is passed on as it is typed, so that its numbers keep all digits. */
export function PushPanel({
  queue: fixed,
  payload: given = '{"n": 1}',
  partition: givenPartition = '',
  title = 'Push a message',
  onPushed,
}: {
  queue?: string
  payload?: string
  partition?: string
  title?: string
  onPushed: () => void
}) {
  const [queue, setQueue] = useState(fixed ?? '')
  const [payload, setPayload] = useState(given)
  const [partition, setPartition] = useState(givenPartition)
  const [delay, setDelay] = useState('')
  const [error, setError] = useState<ApiError | Error>()
  const [pushed, setPushed] = useState<string>()
  const others = {
    queue,
    ...(partition === '' ? {} : { partition }),
    ...(delay === '' ? {} : { delayMs: Number(delay) * 1_000 }),
  }
  const submit = async (event: Event) => {
    event.preventDefault()
    setError(undefined)
    try {
      JSON.parse(payload)
    } catch (problem) {
      setError(new Error(`The payload is not JSON: ${(problem as Error).message}`))
      return
    }
    try {
      const bodyText = `{"items":[${JSON.stringify(others).slice(0, -1)},"payload":${payload}}]}`
      const [answer] = await ask<readonly { readonly id: string }[]>('/api/v1/push', {
        method: 'POST',
        bodyText,
      })
      setPushed(answer?.id)
      onPushed()
    } catch (problem) {
      setError(problem as ApiError)
    }
  }
  const isAllowed = may('push', queue === '' ? undefined : queue)
  return (
    <Panel title={title}>
      <form class="push" onSubmit={(event) => void submit(event)}>
        <Field label="Queue">
          <input
            name="push-queue"
            value={queue}
            required
            readOnly={fixed !== undefined}
            onInput={(event) => setQueue(event.currentTarget.value)}
          />
        </Field>
        <Field label="Partition (optional)">
          <input value={partition} onInput={(event) => setPartition(event.currentTarget.value)} />
        </Field>
        <Field label="Delay in seconds (optional)">
          <input
            type="number"
            min="0"
            value={delay}
            onInput={(event) => setDelay(event.currentTarget.value)}
          />
        </Field>
        <Field label="Payload (JSON)">
          <textarea
            name="push-payload"
            rows={3}
            value={payload}
            spellcheck={false}
            onInput={(event) => setPayload(event.currentTarget.value)}
          />
        </Field>
        <div class="actions">
          <button
            type="submit"
            class="primary"
            disabled={!isAllowed}
            title={isAllowed ? undefined : 'This needs the grant push'}
          >
            Push
          </button>
          <span role="status">
            {pushed === undefined ? null : (
              <>
                Pushed <a href={hrefOf('messages', [pushed])}>{pushed}</a>
              </>
            )}
          </span>
        </div>
      </form>
      {error === undefined ? null : 'status' in error ? (
        <Failure error={error} />
      ) : (
        <div class="failure">{error.message}</div>
      )}
      <Curl
        path="/api/v1/push"
        method="POST"
        body={{ items: [{ ...others, payload: safeJson(payload) }] }}
      />
    </Panel>
  )
}

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
