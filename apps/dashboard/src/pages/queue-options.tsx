import { useState } from 'preact/hooks'
import type { QueueFigures } from '../api/answers.ts'
import { type ApiError, ask, segment } from '../api/client.ts'
import { may } from '../api/session.ts'
import { Curl } from '../parts/curl.tsx'
import { Panel } from '../parts/layout.tsx'
import { Failure } from '../parts/notice.tsx'

/** The options of a queue, which can be edited as JSON. Only changed options are sent. */
export function OptionsPanel({ figures, onDone }: { figures: QueueFigures; onDone: () => void }) {
  const { queue, options } = figures
  const [text, setText] = useState(JSON.stringify(options, null, 2))
  const [error, setError] = useState<ApiError>()
  const edited = parse(text)
  const changes = edited === undefined ? undefined : changesOf(options, edited)
  const hasChanges = changes !== undefined && Object.keys(changes).length > 0
  const path = `/api/v1/queues/${segment(queue)}`
  const body = { options: changes ?? {} }
  const save = async (event: Event) => {
    event.preventDefault()
    try {
      await ask(path, { method: 'PATCH', body })
      setError(undefined)
      onDone()
    } catch (failed) {
      setError(failed as ApiError)
    }
  }
  return (
    <Panel title="Options" note="as JSON; null resets an option">
      <form onSubmit={(event) => void save(event)}>
        <textarea
          class="code"
          aria-label="Options as JSON"
          rows={Math.min(text.split('\n').length + 1, 14)}
          value={text}
          spellcheck={false}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <div class="actions">
          <button type="submit" disabled={!hasChanges || !may('manage', queue)}>
            Save changes
          </button>
          <span class="muted">
            {edited === undefined ? 'This is not a JSON object.' : summaryOf(changes ?? {})}
          </span>
        </div>
      </form>
      {error === undefined ? null : <Failure error={error} />}
      {hasChanges ? <Curl path={path} method="PATCH" body={body} /> : null}
    </Panel>
  )
}

type Options = Readonly<Record<string, unknown>>

function parse(text: string): Options | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Options)
      : undefined
  } catch {
    return undefined
  }
}

/** An option that was removed is reset. */
function changesOf(before: Options, after: Options): Record<string, unknown> {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return Object.fromEntries(
    [...names]
      .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
      .map((name) => [name, after[name] ?? null]),
  )
}

function summaryOf(changes: Options): string {
  const names = Object.keys(changes)
  return names.length === 0 ? 'No changes.' : `Changes: ${names.join(', ')}.`
}
