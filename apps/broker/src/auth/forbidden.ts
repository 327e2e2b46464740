// Refusals for missing grants, where a route or its data decides which queue is meant.
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

/**
 * Refuses receipts of queues outside the grants, if the worker knows the queue: the sender cannot have popped
 * the message itself. Where it does not know the queue, the receipt alone is enough. So this costs no query,
 * and is no guarantee. The error does not name the queue.
 */
export function refuseForeign(
  { grants }: Principal,
  partitionIds: Iterable<string | undefined>,
  queueOf: (partitionId: string) => string | undefined,
): void {
  if (grants.everywhere.has('pop')) return
  for (const partitionId of partitionIds) {
    const queue = partitionId === undefined ? undefined : queueOf(partitionId)
    if (queue !== undefined && !grants.coversSome('pop', queue)) throw forbidden('pop')
  }
}
