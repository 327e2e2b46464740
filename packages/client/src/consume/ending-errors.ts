// Errors that a handler throws to decide what happens to its message.
import { type Duration, parseDuration } from '../duration.ts'

/** Marks them for every copy of this module: a program may load it both as ES module and as CommonJS. */
const brand = Symbol.for('rouse.ending')

/** Fails the attempt, which is charged, and sets when the message is delivered again. */
export class RetryIn extends Error {
  override readonly name = 'RetryIn'
  readonly [brand] = 'retry'
  readonly delayMs: number

  constructor(delay: Duration, options: { readonly cause?: unknown } = {}) {
    const { cause } = options
    super(cause instanceof Error ? cause.message : `retry in ${delay}`, options)
    this.delayMs = parseDuration(delay, 'delay')
  }
}

/** Makes the message a dead letter, because a retry would not help. */
export class Discard extends Error {
  override readonly name = 'Discard'
  readonly [brand] = 'discard'
  readonly code: string

  /** `code` is the dead letter's error code. */
  constructor(
    reason: string,
    options: { readonly cause?: unknown; readonly code?: string | undefined } = {},
  ) {
    super(reason, options)
    this.code = options.code ?? 'discarded'
  }
}

export function isRetryIn(error: unknown): error is RetryIn {
  return Object(error)[brand] === 'retry'
}

export function isDiscard(error: unknown): error is Discard {
  return Object(error)[brand] === 'discard'
}
