import { RouseError } from '../rouse-error.ts'
import type { PushEntry } from './push-item.ts'

export interface PartialPush {
  readonly stored: readonly string[]
  readonly rest: readonly PushEntry<unknown>[]
}

/**
 * `pushMany` in chunks failed after some of them. Its code and the rest are those of the error that ended it. To go on,
 * repeat the call with the same array, or push `rest`.
 */
export class PartialPushError extends RouseError {
  /** The ids of what is known to be stored: the first messages of the call, in order. */
  readonly stored: readonly string[]
  /** The index of the first message that is not known to be stored. */
  readonly firstNotStored: number
  /** The messages from there on, with the keys they were sent with: to push them again stores none twice. */
  // biome-ignore lint/suspicious/noExplicitAny: what they carry was typed where they were pushed
  readonly rest: readonly PushEntry<any>[]

  constructor(error: RouseError, { stored, rest }: PartialPush) {
    super(error.code, error.message, {
      status: error.status,
      retryable: error.retryable,
      requestId: error.requestId,
      node: error.node,
      errors: error.errors,
      cause: error,
    })
    this.stored = stored
    this.firstNotStored = stored.length
    this.rest = rest
  }
}
