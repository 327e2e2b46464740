/** The server's error codes and those of this client. Newer servers may have more. */
export type ErrorCode =
  | 'invalid_request'
  | 'invalid_name'
  | 'invalid_option'
  | 'unknown_option'
  | 'unknown_field'
  | 'invalid_payload'
  | 'invalid_delay'
  | 'invalid_headers'
  | 'invalid_status'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'route_not_found'
  | 'method_not_allowed'
  | 'timeout'
  | 'lease_lost'
  | 'queue_in_use'
  | 'message_finished'
  | 'message_leased'
  | 'not_scheduled'
  | 'repeat_too_late'
  | 'unique_conflict'
  | 'consumer_transaction_open'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'queue_paused'
  | 'queue_full'
  | 'rate_limited'
  | 'headers_too_large'
  | 'internal'
  | 'wrong_isolation'
  | 'starting'
  | 'overloaded'
  | 'partition_locked'
  | 'draining'
  | 'database_unavailable'
  | 'encryption_unavailable'
  | 'issuer_unavailable'
  | 'outcome_unknown'
  | ClientErrorCode
  | (string & {})

/**
 * `unreachable`: no node accepted the connection. `no_answer`: a node did not answer in time, or closed the
 * connection. `buffer_full`: too many pushes are waiting. `closed`: the client was closed, or its worker
 * stopped. `bad_answer`: the answer is not from Rouse. `loop_left`: a `for await` loop was left before its
 * message had been acknowledged or ended in another way. `ack_in_rolled_back`: a handler returned, but the
 * transaction of its ackIn was rolled back.
 */
export type ClientErrorCode =
  | 'unreachable'
  | 'no_answer'
  | 'buffer_full'
  | 'closed'
  | 'bad_answer'
  | 'loop_left'
  | 'ack_in_rolled_back'

/** What is wrong with one field of a request. */
export interface FieldError {
  /** A path in the body: `items[3].queue`. */
  readonly field: string
  readonly message: string
}

export interface RouseErrorOptions {
  readonly status?: number | undefined
  readonly retryable?: boolean | undefined
  readonly requestId?: string | undefined
  readonly node?: string | undefined
  readonly errors?: readonly FieldError[] | undefined
  readonly cause?: unknown
}

/** Marks errors of every copy of this module: a program may load it both as ES module and as CommonJS. */
const brand = Symbol.for('rouse.error')

/** Every failure of this client. Branch on `code`. */
export class RouseError extends Error {
  /** True for errors of every copy of this package that a program has loaded. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    const isOfThisCopy = Function.prototype[Symbol.hasInstance].call(this, value)
    return isOfThisCopy || (this === RouseError && Object(value)[brand] === true)
  }

  readonly [brand] = true
  override readonly name = 'RouseError'
  readonly code: ErrorCode
  /** The HTTP status; undefined if no server answered. */
  readonly status: number | undefined
  /** Whether the same call may succeed later. The client has already used up its own retries. */
  readonly retryable: boolean
  /** Identifies the request in the server's log. */
  readonly requestId: string | undefined
  /** The node that answered. */
  readonly node: string | undefined
  readonly errors: readonly FieldError[] | undefined

  constructor(code: ErrorCode, message: string, options: RouseErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = options.status
    this.retryable = options.retryable ?? false
    this.requestId = options.requestId
    this.node = options.node
    this.errors = options.errors
  }
}

/** Whether an error is of this client, and has the code, if one is given. */
export function isRouseError(error: unknown, code?: ErrorCode): error is RouseError {
  return error instanceof RouseError && (code === undefined || error.code === code)
}

/** HTTP statuses that mean that an item of the request is invalid, and nothing of the request took effect. */
export const blames = new Set<number | undefined>([400, 413, 422])
