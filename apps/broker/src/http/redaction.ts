// What a principal that may observe a queue, but not peek into it, gets of messages, dead letters and traces: the same
// response without their content.
import { forbidden } from '../auth/forbidden.ts'
import type { Principal } from '../auth/principal.ts'

/**
 * The fields that are left out, at any depth. An error message may quote a payload; an error code is only
 * counted.
 */
const content: ReadonlySet<string> = new Set([
  'data',
  'headers',
  'result',
  'progress',
  'errorMessage',
])

/** `text` is the JSON text of something that is in the queue. */
export function shownTo({ grants }: Principal, queue: string, text: string): string {
  return grants.covers('peek', queue) ? text : withoutContent(text)
}

function withoutContent(text: string): string {
  const left: unknown = JSON.parse(text, (name, value: unknown) =>
    content.has(name) ? undefined : value,
  )
  return JSON.stringify({ ...(left as object), redacted: true })
}

/**
 * For routes that find the queue of a request only in the database. Throws `missing`, as if nothing was found, to a
 * principal that may neither peek into the queue nor observe it.
 */
export function requireReadable({ grants }: Principal, queue: string, missing: () => Error): void {
  if (!grants.covers('peek', queue) && !grants.covers('observe', queue)) throw missing()
}

/** A filter by content would show it, bit by bit. */
export function requireFilter(
  { grants }: Principal,
  queue: string | undefined,
  isByContent: boolean,
): void {
  if (!isByContent) return
  const mayPeek = queue === undefined ? grants.everywhere.has('peek') : grants.covers('peek', queue)
  if (!mayPeek) throw forbidden('peek', queue ?? '*')
}
