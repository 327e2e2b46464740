import type { Ack } from './consumer-calls.ts'
import type { Message } from './message.ts'

/** What one fetch was given: all its messages are one lease, and one renewal keeps them all. */
export interface HeldLease {
  /** Any of the messages' lease ids stands for the lease. */
  readonly id: string
  /** How many messages it was given for. */
  readonly size: number
  /** Messages that are not yet known to have ended. */
  open: number
  /** When it was last given or extended; it lasts one lease longer. */
  sinceMs: number
  renewing: boolean
  lost: boolean
}

/** One call of ackIn: its messages are acknowledged together or not at all. */
export interface AckIn {
  readonly messages: readonly Held[]
}

/** A delivered message until it is known to have ended. */
// biome-ignore lint/suspicious/noExplicitAny: only handlers know what is in it
export interface Held<Data = any> {
  readonly message: Message<Data>
  readonly lease: HeldLease
  /** Its end is decided: nothing more may be said about it. */
  settled: boolean
  /** Acknowledged by this call of ackIn, in a transaction of the handler, which may still be rolled back. */
  ackedIn: AckIn | undefined
}

export type Ending = Pick<Ack, 'status' | 'error' | 'errorCode' | 'delayMs'>

export function ackOf({ message }: Held, ending: Ending): Ack {
  return {
    transactionId: message.transactionId,
    partitionId: message.partitionId,
    leaseId: message.leaseId ?? '',
    ...ending,
  }
}

const errorCharsMax = 2_000
const errorCodeCharsMax = 80

/** A handler threw: the attempt failed, and this is what people will read. */
export function failedBy(error: unknown): Ending {
  const { message, code, name } = (error instanceof Error ? error : {}) as Partial<
    Error & { code: unknown }
  >
  const kind = typeof code === 'string' && code !== '' ? code : name
  return {
    status: 'failed',
    error: clip(message ?? String(error), errorCharsMax),
    ...(kind === undefined ? {} : { errorCode: clip(kind, errorCodeCharsMax) }),
  }
}

/** What is said of a message after its ackIn: refused by the server if the transaction was committed. */
export const rolledBack: Ending = {
  status: 'failed',
  error: 'the handler returned, but the transaction of its ackIn was rolled back',
  errorCode: 'ack_in_rolled_back',
}

export function deadLetteredFor(reason: string): Ending {
  return { status: 'dlq', error: clip(reason, errorCharsMax), errorCode: 'dead_lettered' }
}

function clip(text: string, charsMax: number): string {
  return text.length > charsMax ? text.slice(0, charsMax) : text
}
