import { type Duration, parseDuration } from '../duration.ts'
import { RouseError } from '../rouse-error.ts'

export interface PushOptions {
  /** Messages of a partition are delivered in order. Absent: `Default`. */
  readonly partition?: string | undefined
  /** Not before so long from now. */
  readonly delay?: Duration | undefined
  /** Not before this time. A Date only: a text would leave open in which time zone it is meant. */
  readonly runAt?: Date | undefined
  /** A second push with the same key into the same partition is accepted and ignored. */
  readonly dedupeKey?: string | undefined
  readonly headers?: Readonly<Record<string, unknown>> | undefined
  readonly traceId?: string | undefined
  /** W3C trace context; travels as a header of the message. */
  readonly traceparent?: string | undefined
}

/** A message to be pushed, with its queue: typed by the map of queues. */
export type PushTo<Queues> = {
  [Name in keyof Queues & string]: PushOptions & {
    readonly queue: Name
    readonly payload: Queues[Name]
  }
}[keyof Queues & string]

/** A message to be pushed into a queue that is known already. */
export interface PushEntry<Payload> extends PushOptions {
  readonly payload: Payload
}

/**
 * One item of a push as JSON. Written at once, so that what the caller changes later changes nothing, and a payload that
 * is no JSON fails its own push only. With the id of `newId` it may be sent twice and still be one message.
 */
export function pushItemText(
  queue: string,
  payload: unknown,
  options: PushOptions,
  newId?: () => string,
): string {
  if (payload === undefined) throw new RouseError('invalid_payload', 'payload is undefined')
  const { partition, delay, traceparent } = options
  const headers = traceparent === undefined ? options.headers : { ...options.headers, traceparent }
  try {
    return JSON.stringify({
      queue,
      partition,
      payload,
      transactionId: options.dedupeKey ?? newId?.(),
      traceId: options.traceId ?? traceIdOf(traceparent),
      delayMs: delay === undefined ? undefined : parseDuration(delay, 'delay'),
      runAt: timeText(options.runAt),
      headers,
    })
  } catch (error) {
    if (error instanceof RouseError) throw error
    throw new RouseError('invalid_payload', `not JSON: ${String(error)}`, { cause: error })
  }
}

/** Checked here: in JavaScript anything may come in place of a date. */
function timeText(runAt: unknown): string | undefined {
  if (runAt === undefined) return undefined
  if (runAt instanceof Date && Number.isFinite(runAt.getTime())) return runAt.toISOString()
  const text = runAt instanceof Date ? 'an invalid one' : JSON.stringify(runAt)
  throw new RouseError('invalid_delay', `runAt must be a Date, not ${text}`)
}

function traceIdOf(traceparent: string | undefined): string | undefined {
  return /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(traceparent ?? '')?.[1]
}
