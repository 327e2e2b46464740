import { type Duration, parseDuration } from '../duration.ts'
import { jsonText } from '../push/push-item.ts'
import { RouseError } from '../rouse-error.ts'
import type { Ack } from './consumer-calls.ts'
import { isDiscard, isRetryIn } from './ending-errors.ts'
import { errorCodeOf } from './error-code.ts'
import type { Message } from './message.ts'

/** The lease of one fetch. It covers all messages of the fetch; one renewal extends it for all of them. */
export interface HeldLease {
  readonly id: string
  /** The number of messages at the start. */
  readonly size: number
  /** Messages not yet known to have ended. */
  open: number
  /** One lease time before the lease expires: when it was granted or last extended. */
  sinceMs: number
  renewing: boolean
  lost: boolean
  /** A handler used ackIn on a message of this lease. */
  hasAckIn: boolean
}

/** One call of ackIn: its messages are acknowledged together or not at all. */
export interface AckIn {
  readonly messages: readonly Held[]
}

/** A delivered message until it is known to have ended. */
// biome-ignore lint/suspicious/noExplicitAny: only handlers know the type of the data
export interface Held<Data = any> {
  message: Message<Data>
  readonly lease: HeldLease
  /** True once it is decided how the message ends. Further acks are then refused. */
  settled: boolean
  /** How the message ends, once that is decided by the handler's call or its result. */
  ending: Ending | undefined
  /** Acknowledged by this ackIn call, in the handler's transaction, which may still be rolled back. */
  ackedIn: AckIn | undefined
}

export type Ending = Pick<Ack, 'status' | 'error' | 'errorCode' | 'delayMs' | 'result'>

/** A node of release 0.1.0 returns no receipt, and takes the three ids instead. */
export function ackOf(message: Message, ending: Ending): Ack {
  const { receipt, transactionId, partitionId, leaseId } = message as Partial<Message>
  if (receipt !== undefined) return { receipt: receipt ?? '', ...ending }
  return { transactionId, partitionId, leaseId: leaseId ?? '', ...ending }
}

/** The server's limit. */
const resultBytesMax = 65_536

/**
 * A copy of the result as it is stored. Throws if the server would refuse it: it would refuse the other
 * acknowledgements of the request as well.
 */
export function resultOf(value: unknown): unknown {
  const text = jsonText(value) as string | undefined
  if (text === undefined) return undefined
  const bytes = new TextEncoder().encode(text).length
  if (bytes <= resultBytesMax) return JSON.parse(text)
  const detail = `the result has ${bytes} bytes, and at most ${resultBytesMax} are kept`
  throw new RouseError('payload_too_large', detail)
}

/** Nothing if no delay is given: the queue's options then decide. */
export function delayOf(delay: Duration | undefined): Pick<Ending, 'delayMs'> {
  return delay === undefined ? {} : { delayMs: parseDuration(delay, 'delay') }
}

const errorCharsMax = 2_000

/** A handler threw: the attempt failed, and this error is stored with it. */
export function failedBy(error: unknown): Ending {
  if (isDiscard(error)) return deadLetteredFor(error.message, error.code)
  const cause = isRetryIn(error) ? (error.cause ?? error) : error
  return {
    status: 'failed',
    error: clip(cause instanceof Error ? cause.message : String(cause), errorCharsMax),
    errorCode: errorCodeOf(cause),
    ...(isRetryIn(error) ? { delayMs: error.delayMs } : {}),
  }
}

/**
 * The ending that is sent when a handler that used ackIn has returned. The server refuses it if the
 * transaction was committed.
 */
export const rolledBack: Ending = {
  status: 'failed',
  error: 'the handler returned, but the transaction of ackIn was rolled back',
  errorCode: 'ack_in_rolled_back',
}

export function deadLetteredFor(reason: string, errorCode = 'dead_lettered'): Ending {
  return { status: 'dlq', error: clip(reason, errorCharsMax), errorCode }
}

function clip(text: string, charsMax: number): string {
  return text.length > charsMax ? text.slice(0, charsMax) : text
}
