/** Every error of the HTTP API. A published code keeps its meaning and its status. */
export const errorRegistry = {
  invalid_request: { status: 400, title: 'The request is not valid', retryable: false },
  unknown_field: { status: 400, title: 'There is no such field', retryable: false },
  invalid_name: { status: 400, title: 'A name is not valid', retryable: false },
  invalid_option: { status: 400, title: 'A queue option is not valid', retryable: false },
  unknown_option: { status: 400, title: 'There is no such queue option', retryable: false },
  invalid_payload: { status: 400, title: 'A payload is not valid', retryable: false },
  invalid_delay: { status: 400, title: 'A delay is not valid', retryable: false },
  invalid_headers: { status: 400, title: 'Message headers are not valid', retryable: false },
  invalid_status: { status: 400, title: 'There is no such status', retryable: false },
  unauthenticated: { status: 401, title: 'A valid credential is missing', retryable: false },
  forbidden: { status: 403, title: 'The credential does not allow this', retryable: false },
  not_found: { status: 404, title: 'Not found', retryable: false },
  route_not_found: { status: 404, title: 'There is no such route', retryable: false },
  method_not_allowed: { status: 405, title: 'Method not allowed', retryable: false },
  timeout: { status: 408, title: 'The request took too long to arrive', retryable: true },
  lease_lost: { status: 409, title: 'The lease is lost', retryable: false },
  queue_in_use: { status: 409, title: 'The queue is in use', retryable: true },
  message_leased: { status: 409, title: 'A consumer holds the message', retryable: true },
  message_finished: { status: 409, title: 'The message has ended', retryable: false },
  not_scheduled: { status: 409, title: 'The message is not scheduled', retryable: false },
  unique_conflict: { status: 409, title: 'Another message has the unique key', retryable: false },
  repeat_too_late: { status: 409, title: 'It is too late to repeat this push', retryable: false },
  consumer_transaction_open: {
    status: 409,
    title: "A consumer's transaction is open",
    retryable: true,
    retryAfterSeconds: 1,
  },
  payload_too_large: { status: 413, title: 'The request is too large', retryable: false },
  unsupported_media_type: { status: 415, title: 'Unsupported media type', retryable: false },
  queue_paused: { status: 423, title: 'The queue is paused', retryable: true },
  queue_full: { status: 429, title: 'The queue is full', retryable: true, retryAfterSeconds: 1 },
  rate_limited: { status: 429, title: 'Too many requests', retryable: true, retryAfterSeconds: 1 },
  headers_too_large: { status: 431, title: 'The request headers are too large', retryable: false },
  wrong_isolation: {
    status: 500,
    title: 'The database session has the wrong isolation level',
    retryable: true,
  },
  internal: { status: 500, title: 'Internal error', retryable: true },
  encryption_unavailable: {
    status: 503,
    title: 'The node cannot encrypt or decrypt for this queue',
    retryable: true,
    retryAfterSeconds: 1,
  },
  issuer_unavailable: {
    status: 503,
    title: 'The keys of the OIDC issuer could not be read yet',
    retryable: true,
    retryAfterSeconds: 1,
  },
  starting: { status: 503, title: 'The node is starting', retryable: true, retryAfterSeconds: 1 },
  partition_locked: {
    status: 503,
    title: 'Another session of the database keeps a partition locked',
    retryable: true,
    retryAfterSeconds: 1,
  },
  overloaded: { status: 503, title: 'Overloaded', retryable: true, retryAfterSeconds: 1 },
  draining: { status: 503, title: 'The node is draining', retryable: true, retryAfterSeconds: 1 },
  database_unavailable: {
    status: 503,
    title: 'The database is unavailable',
    retryable: true,
    retryAfterSeconds: 1,
  },
  outcome_unknown: {
    status: 503,
    title: 'It is unknown whether this was committed',
    retryable: true,
    retryAfterSeconds: 1,
  },
} as const satisfies Record<string, ErrorKind>

export interface ErrorKind {
  readonly status: number
  readonly title: string
  /** Whether the same request, unchanged, may succeed later. */
  readonly retryable: boolean
  /** The `Retry-After` value, unless the error itself names a time. */
  readonly retryAfterSeconds?: number
}

export type ErrorCode = keyof typeof errorRegistry

export function errorKind(code: ErrorCode): ErrorKind {
  return errorRegistry[code]
}

/** For codes from outside, such as the detail of a PostgreSQL error. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(errorRegistry, code)
}
