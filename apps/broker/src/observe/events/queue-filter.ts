import { fieldError, parseQueueName } from '@rouse/protocol'
import { type Grants, matches } from '../../auth/grants.ts'

const namesMax = 200

/** The queues that a stream shows: those that it asked for and that its principal may observe. */
export class QueueFilter {
  readonly #grants: Grants
  readonly #patterns: readonly string[] | undefined
  /** Every queue is shown, and what is about no queue in particular. */
  readonly isAll: boolean
  /** What is about nodes is shown, as in `/api/v1/nodes`. */
  readonly seesNodes: boolean
  /** The queues that were named, without patterns. */
  readonly names: readonly string[]

  constructor(grants: Grants, patterns: readonly string[] | undefined) {
    this.#grants = grants
    this.#patterns = patterns
    this.seesNodes = grants.everywhere.has('observe')
    this.isAll = patterns === undefined && this.seesNodes
    this.names = patterns?.filter((pattern) => !pattern.endsWith('*')) ?? []
  }

  sees(queue: string): boolean {
    if (this.isAll) return true
    if (!this.#grants.covers('observe', queue)) return false
    return this.#patterns?.some((pattern) => matches(pattern, queue)) ?? true
  }
}

/** Names and prefixes that end in `*`, separated by commas. */
export function readQueues(value: unknown): string[] | undefined {
  if (value === undefined) return undefined
  const parts = typeof value === 'string' ? value.split(',') : []
  if (parts.length > namesMax) {
    throw fieldError('invalid_request', 'queues', `must have at most ${namesMax} names`)
  }
  return parts.map((part) => parseQueueName(decoded(part), 'queues'))
}

/** A name with a comma is encoded twice: once for the list, once for the query. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw fieldError('invalid_request', 'queues', 'must be percent-encoded names')
  }
}
