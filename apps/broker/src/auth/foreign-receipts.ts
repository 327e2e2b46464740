import { forbidden } from './forbidden.ts'
import type { Principal } from './principal.ts'

/**
 * A receipt is the capability for its message. Still, one of a queue that the grants do not cover is refused where the
 * worker knows the queue: a principal gets no such receipt by itself. It costs no query, so it is no guarantee. The error
 * does not name the queue.
 */
export function refuseForeign(
  { grants }: Principal,
  partitionIds: Iterable<string | undefined>,
  queueOf: (partitionId: string) => string | undefined,
): void {
  if (grants.coversAll('pop')) return
  for (const partitionId of partitionIds) {
    const queue = partitionId === undefined ? undefined : queueOf(partitionId)
    if (queue !== undefined && !grants.coversSome('pop', queue)) throw forbidden('pop')
  }
}
