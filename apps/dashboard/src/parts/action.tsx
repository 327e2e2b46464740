import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ApiError } from '../api/client.ts'
import { Failure } from './notice.tsx'

/** A button for an action that can be undone. It shows the error of the action below itself. */
export function ActionButton({
  children,
  run,
  onDone,
  isAllowed = true,
  needs,
  kind = '',
}: {
  children: ComponentChildren
  run: () => Promise<unknown>
  onDone?: () => void
  isAllowed?: boolean
  /** The grant, for the explanation of a disabled button. */
  needs?: string
  kind?: string
}) {
  const [error, setError] = useState<ApiError>()
  const [isRunning, setIsRunning] = useState(false)
  const click = async () => {
    setIsRunning(true)
    setError(undefined)
    try {
      await run()
      onDone?.()
    } catch (failed) {
      setError(failed as ApiError)
    }
    setIsRunning(false)
  }
  return (
    <>
      <button
        type="button"
        class={kind}
        disabled={isRunning || !isAllowed}
        title={isAllowed ? undefined : `This needs the grant ${needs ?? 'manage'}`}
        onClick={() => void click()}
      >
        {children}
      </button>
      {error === undefined ? null : <Failure error={error} />}
    </>
  )
}
