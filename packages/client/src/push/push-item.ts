import { type Duration, parseDuration } from '../duration.ts'
import { RouseError } from '../rouse-error.ts'

/** Options of a message. */
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
  /** One message with this key at a time. */
  readonly unique?: Unique | undefined
  /** 0 to 9, higher first. Not for messages with a partition. Default 0. */
  readonly priority?: number | undefined
  /** Attempts after the first, instead of the queue's. */
  readonly retryLimit?: number | undefined
  /** The delay before each retry, instead of the queue's; the last one repeats. */
  readonly retryBackoff?: Duration | readonly Duration[] | undefined
  /** Not delivered later than this time after it is due. */
  readonly ttl?: Duration | undefined
  readonly headers?: Readonly<Record<string, unknown>> | undefined
  readonly traceId?: string | undefined
  /** W3C trace context, sent as a header of the message. */
  readonly traceparent?: string | undefined
}

/** A key that at most one message has at a time. */
export interface Unique {
  readonly key: string
  /** Whether the key counts in the whole queue, or in the message's partition. Default `queue`. */
  readonly scope?: 'queue' | 'partition' | undefined
  /** How long the message has the key: until it is completed (the default), or for a time. */
  readonly until?: 'completed' | { readonly window: Duration } | undefined
  /**
   * What a push with the same key does: nothing (the default; its status is `duplicate`), replace the message if no
   * consumer has been given it, or fail with `unique_conflict`.
   */
  readonly onConflict?: 'ignore' | 'replace' | 'reject' | undefined
}

/** Options of one push that are not part of the message. */
export interface PushCallOptions extends PushOptions {
  /**
   * Stops waiting: the push rejects with the signal's reason. A message that was already sent may still be
   * stored.
   */
  readonly signal?: AbortSignal | undefined
}

const optionNames = new Set([
  'partition',
  'delay',
  'runAt',
  'dedupeKey',
  'unique',
  'priority',
  'retryLimit',
  'retryBackoff',
  'ttl',
  'headers',
  'traceId',
  'traceparent',
  'signal',
])

/** Without types, a misspelt option would change what happens without a word. */
export function checkOptionNames(options: object): void {
  const unknown = Object.keys(options).find((name) => !optionNames.has(name))
  if (unknown === undefined) return
  const names = [...optionNames].join(', ')
  throw new RouseError('unknown_field', `unknown option ${unknown}; the options are ${names}`)
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
  checkOptionNames(options)
  const { partition, delay } = options
  return jsonText({
    queue,
    partition,
    payload,
    transactionId: options.dedupeKey ?? newId?.(),
    delayMs: delay === undefined ? undefined : parseDuration(delay, 'delay'),
    runAt: timeText(options.runAt),
    ...ownOptions(options),
    ...withTrace(options),
  })
}

/** What a message has of its own instead of its queue, as the API names it. */
export function ownOptions({ unique, priority, retryLimit, retryBackoff, ttl }: PushOptions) {
  const until = unique?.until
  return {
    unique: unique && {
      ...unique,
      until:
        typeof until === 'object' ? { windowMs: parseDuration(until.window, 'window') } : until,
    },
    priority,
    retryLimit,
    retryBackoffMs:
      retryBackoff === undefined
        ? undefined
        : [retryBackoff].flat().map((one) => parseDuration(one as Duration, 'retryBackoff')),
    ttlMs: ttl === undefined ? undefined : parseDuration(ttl, 'ttl'),
  }
}

export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch (error) {
    throw new RouseError('invalid_payload', `not JSON: ${String(error)}`, { cause: error })
  }
}

/** The headers and the trace id of a message, with the trace context in both. */
export function withTrace({
  headers,
  traceId,
  traceparent,
}: PushOptions): Pick<PushOptions, 'headers' | 'traceId'> {
  return {
    traceId: traceId ?? traceIdOf(traceparent),
    headers: traceparent === undefined ? headers : { ...headers, traceparent },
  }
}

/** Checked at run time: JavaScript callers may pass anything. */
export function timeText(runAt: unknown): string | undefined {
  if (runAt === undefined) return undefined
  if (runAt instanceof Date && Number.isFinite(runAt.getTime())) return runAt.toISOString()
  const text = runAt instanceof Date ? 'an invalid Date' : JSON.stringify(runAt)
  throw new RouseError('invalid_delay', `runAt must be a Date, not ${text}`)
}

function traceIdOf(traceparent: string | undefined): string | undefined {
  return /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(traceparent ?? '')?.[1]
}
