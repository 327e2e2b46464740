import { type Duration, parseDuration } from '../duration.ts'
import { RouseError } from '../rouse-error.ts'

export interface PushOptions {
  /**
   * Messages of a partition are delivered in order. A message without a partition is independent of all
   * others, unless the queue's `ordering` is set to `partition`.
   */
  readonly partition?: string | undefined
  /** Delivered no earlier than this delay from now. */
  readonly delay?: Duration | undefined
  /** Delivered no earlier than this time. Must be a Date, because a text may lack the time zone. */
  readonly runAt?: Date | undefined
  /** A second push with the same key into the same partition is accepted and ignored. */
  readonly dedupeKey?: string | undefined
  readonly headers?: Readonly<Record<string, unknown>> | undefined
  readonly traceId?: string | undefined
  /** W3C trace context, sent as a header of the message. */
  readonly traceparent?: string | undefined
}

/** A message and its queue, typed by the queue map. */
export type PushTo<Queues> = {
  [Name in keyof Queues & string]: PushOptions & {
    readonly queue: Name
    readonly payload: Queues[Name]
  }
}[keyof Queues & string]

/** A message for a known queue. */
export interface PushEntry<Payload> extends PushOptions {
  readonly payload: Payload
}

/**
 * Serialises one item of a push at once, so that later changes to the payload have no effect, and a payload
 * that is not JSON fails only its own push. An item with an id from `newId` may be sent twice: it is stored
 * once.
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

/** Checked at run time: JavaScript callers may pass anything. */
function timeText(runAt: unknown): string | undefined {
  if (runAt === undefined) return undefined
  if (runAt instanceof Date && Number.isFinite(runAt.getTime())) return runAt.toISOString()
  const text = runAt instanceof Date ? 'an invalid Date' : JSON.stringify(runAt)
  throw new RouseError('invalid_delay', `runAt must be a Date, not ${text}`)
}

function traceIdOf(traceparent: string | undefined): string | undefined {
  return /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(traceparent ?? '')?.[1]
}
