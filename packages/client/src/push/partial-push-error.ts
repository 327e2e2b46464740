import { RouseError, type RouseErrorOptions } from '../rouse-error.ts'
import type { PushEntry } from './push-item.ts'

export interface PartialPush {
  readonly stored: readonly string[]
  readonly rest: readonly PushEntry<unknown>[]
}

/**
 * A chunked `pushMany` failed; the chunks before the failure are stored. The code and the fields are those of
 * the error that ended the call. To continue, repeat the call with the same array, or push `rest`.
 */
export class PartialPushError extends RouseError {
  /** The ids of the messages known to be stored: the first ones of the call, in order. */
  readonly stored: readonly string[]
  /** The index of the first message that is not known to be stored. */
  readonly firstNotStored: number
  /** The messages from that index on, with their dedupe keys: pushing them again stores none twice. */
  // biome-ignore lint/suspicious/noExplicitAny: payloads are typed where they are pushed
  readonly rest: readonly PushEntry<any>[]

  constructor(error: RouseError, { stored, rest }: PartialPush) {
    super(error.code, error.message, { ...(error as RouseErrorOptions), cause: error })
    this.stored = stored
    this.firstNotStored = stored.length
    this.rest = rest
  }
}
