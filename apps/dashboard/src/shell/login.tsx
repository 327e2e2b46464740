import { useState } from 'preact/hooks'
import { ApiError } from '../api/client.ts'
import { goToIssuer } from '../api/issuer-login.ts'
import { session, signIn } from '../api/session.ts'
import { useStore } from '../api/store.ts'

/** Shown where requests need a credential. `failure`: why signing in with the issuer failed. */
export function LoginPage({ failure }: { failure: string | undefined }) {
  const authorizationUrl = useStore(session)?.authorizationUrl ?? null
  const [key, setKey] = useState('')
  const [problem, setProblem] = useState(failure)
  const [isRunning, setIsRunning] = useState(false)
  const submit = async (event: Event) => {
    event.preventDefault()
    setIsRunning(true)
    try {
      await signIn(key)
    } catch (error) {
      setProblem(textOf(error))
    }
    setIsRunning(false)
  }
  const leave = (url: string) => {
    goToIssuer(url).catch((error: unknown) => setProblem(textOf(error)))
  }
  return (
    <main class="login" id="content">
      <form onSubmit={(event) => void submit(event)}>
        <h1>
          <img src="./favicon.svg" alt="" width="28" height="28" /> Rouse
        </h1>
        <label>
          API key
          <input
            type="password"
            autoComplete="current-password"
            value={key}
            placeholder="rouse_…"
            autofocus
            required
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        {problem === undefined ? null : (
          <p class="failure" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="primary" disabled={isRunning}>
          Sign in
        </button>
        {authorizationUrl === null ? null : (
          <button type="button" onClick={() => leave(authorizationUrl)}>
            Sign in with {new URL(authorizationUrl).host}
          </button>
        )}
        <p class="muted">
          No key yet? <code>rouse keys create NAME --preset viewer</code> prints one. The browser
          stores no key, only a session of 12 hours.
        </p>
      </form>
    </main>
  )
}

function textOf(error: unknown): string {
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error)
  return error.status === 401
    ? 'This key is not valid: unknown, expired or revoked.'
    : error.message
}
