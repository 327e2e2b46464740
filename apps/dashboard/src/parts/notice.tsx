// States of a page that is not simply its data: empty, failed, refused. Each says what to do.
import type { ComponentChildren } from 'preact'
import type { ApiError } from '../api/client.ts'

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children === undefined ? null : <div>{children}</div>}
    </div>
  )
}

export function Failure({
  error,
  onRetry,
}: {
  error: ApiError
  onRetry?: (() => void) | undefined
}) {
  return (
    <div class="failure" role="alert">
      <strong>{titleOf(error)}</strong>
      <div>{error.message}</div>
      <div class="muted">{adviceOf(error)}</div>
      {onRetry === undefined ? null : (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

function titleOf({ status, code }: ApiError): string {
  if (status === 403) return 'Not allowed'
  if (status === 404) return 'Not found'
  if (code === 'no_connection') return 'The cluster does not answer'
  if (code === 'database_unavailable') return 'PostgreSQL does not answer'
  return `The node refused the request (${code})`
}

function adviceOf({ status, code, grant }: ApiError): string {
  if (status === 403)
    return `Ask an administrator for a key with the grant ${grant ?? 'that is missing'}.`
  if (status === 404) return 'It may have been deleted, or the name is misspelt.'
  if (code === 'no_connection')
    return 'The page tries again by itself. Check that a node runs: rouse doctor.'
  if (code === 'database_unavailable') return 'Check PostgreSQL: rouse doctor says what is wrong.'
  if (status >= 500) return 'It may succeed later. The log of the node has the details.'
  return 'Correct the request and send it again.'
}

/** What is shown until the first answer. */
export function Loading() {
  return (
    <div class="loading" aria-live="polite">
      Reading …
    </div>
  )
}

/** The data if it is there, otherwise why it is not. Old data stays visible while a new reading fails. */
export function Loaded<Data>({
  data,
  error,
  reload,
  children,
}: {
  data: Data | undefined
  error: ApiError | undefined
  reload?: () => void
  children: (data: Data) => ComponentChildren
}) {
  return (
    <>
      {error === undefined ? null : <Failure error={error} onRetry={reload} />}
      {data === undefined ? error === undefined ? <Loading /> : null : children(data)}
    </>
  )
}
