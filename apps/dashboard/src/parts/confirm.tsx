// A dialog for actions that cannot be undone: it says what will happen, with a count, and wants the name typed.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ApiError } from '../api/client.ts'
import { type Call, Curl } from './curl.tsx'
import { Failure } from './notice.tsx'

export interface Confirmation {
  readonly title: string
  /** The button, such as "Delete queue". */
  readonly action: string
  /** Typed by the user before the button works; undefined: not needed. */
  readonly name?: string | undefined
  readonly call: Call
  readonly run: () => Promise<unknown>
  /** How many things the action affects, read while the dialog is open. */
  readonly dryRun?: (() => Promise<string>) | undefined
  readonly children?: ComponentChildren
}

export function ConfirmDialog({
  confirmation,
  onClose,
}: {
  confirmation: Confirmation
  onClose: (isDone: boolean) => void
}) {
  const { title, action, name, call, run, children } = confirmation
  const dialog = useRef<HTMLDialogElement>(null)
  const [typed, setTyped] = useState('')
  const [error, setError] = useState<ApiError>()
  const [isRunning, setIsRunning] = useState(false)
  const effect = useDryRun(confirmation.dryRun)
  useEffect(() => dialog.current?.showModal(), [])

  const submit = async (event: Event) => {
    event.preventDefault()
    setIsRunning(true)
    try {
      await run()
      onClose(true)
    } catch (failed) {
      setError(failed as ApiError)
      setIsRunning(false)
    }
  }
  const isReady = (name === undefined || typed === name) && !isRunning
  return (
    <dialog ref={dialog} onClose={() => onClose(false)} aria-label={title}>
      <form onSubmit={(event) => void submit(event)}>
        <h2>{title}</h2>
        {children}
        {effect === undefined ? null : <p class="effect">{effect}</p>}
        {name === undefined ? null : (
          <label>
            To confirm, type <code class="name">{name}</code>
            <input
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
              autoComplete="off"
            />
          </label>
        )}
        {error === undefined ? null : <Failure error={error} />}
        <Curl {...call} />
        <div class="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class="danger" disabled={!isReady}>
            {isRunning ? 'Working …' : action}
          </button>
        </div>
      </form>
    </dialog>
  )
}

function useDryRun(dryRun: Confirmation['dryRun']): string | undefined {
  const [text, setText] = useState(dryRun === undefined ? undefined : 'Counting …')
  useEffect(() => {
    dryRun?.().then(setText, (error: Error) => setText(`Could not count: ${error.message}`))
  }, [])
  return text
}

/** A dialog that is open while there is a confirmation. */
export function useConfirm(onDone: () => void): {
  readonly confirm: (confirmation: Confirmation) => void
  readonly dialog: ComponentChildren
} {
  const [confirmation, setConfirmation] = useState<Confirmation>()
  const close = (isDone: boolean) => {
    setConfirmation(undefined)
    if (isDone) onDone()
  }
  const dialog =
    confirmation === undefined ? null : (
      <ConfirmDialog confirmation={confirmation} onClose={close} />
    )
  return { confirm: setConfirmation, dialog }
}
