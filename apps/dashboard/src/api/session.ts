// Who uses the dashboard, and what they may do. Buttons that the grants do not allow are disabled; the node decides in any
// case.
import { ask, whenUnauthenticated } from './client.ts'
import { Store } from './store.ts'

export interface Session {
  readonly principal: string | null
  readonly grants: readonly string[]
  readonly keyId: string | null
  readonly isOpen: boolean
  readonly signInWith: readonly string[]
  /** Null: not with an OIDC issuer. */
  readonly authorizationUrl: string | null
}

/** Undefined until the node has answered. */
export const session = new Store<Session | undefined>(undefined)

export async function readSession(): Promise<void> {
  session.set(await ask<Session>('/api/v1/session'))
}

export async function signIn(key: string): Promise<void> {
  session.set(await ask<Session>('/api/v1/session', { method: 'POST', body: { key } }))
}

export async function signOut(): Promise<void> {
  await ask<Session>('/api/v1/session', { method: 'DELETE' })
  await readSession()
}

whenUnauthenticated(() => {
  const last = session.value
  if (last !== undefined && last.principal !== null)
    session.set({ ...last, principal: null, grants: [] })
})

/** Whether a grant covers the verb on this queue, or, without one, on at least one queue. */
export function may(verb: string, queue?: string): boolean {
  return (session.value?.grants ?? []).some((grant) => {
    const [known, pattern = ''] = splitOnce(grant, ':')
    if (known !== verb) return false
    if (queue === undefined || known === 'admin') return true
    return pattern.endsWith('*') ? queue.startsWith(pattern.slice(0, -1)) : pattern === queue
  })
}

function splitOnce(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator)
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}
