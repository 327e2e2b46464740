import { RouseError, type Verb } from '@rouse/protocol'
import type { Principal } from './principal.ts'

/** The error for a missing grant. It repeats names of the request only, so it shows nothing about queues. */
export function forbidden(verb: Verb, queue?: string): RouseError {
  const grant = queue === undefined ? verb : `${verb}:${queue}`
  return new RouseError('forbidden', `this credential lacks the grant ${grant}`, {
    facts: { grant },
  })
}

/**
 * For routes that find the queue of a request only in the database. Throws `missing`, as if nothing was found, to a
 * principal that may not observe the queue.
 */
export function requireOnFound(
  { grants }: Principal,
  verb: Verb,
  queue: string,
  missing: () => Error,
): void {
  if (grants.covers(verb, queue)) return
  throw grants.covers('observe', queue) ? forbidden(verb, queue) : missing()
}
