import { type ErrorCode, errorKind } from './error-registry.ts'

export interface FieldError {
  /** A path in the body or query: `items[3].queue`. */
  readonly field: string
  readonly message: string
  /** For an unknown field: the name that is probably meant. */
  readonly suggestion?: string
}

/** The error for a field that does not exist. */
export function unknownField(
  field: string,
  suggestion: string | undefined,
  kind = 'field',
): FieldError {
  const message = `is not a known ${kind}`
  if (suggestion === undefined) return { field, message }
  return { field, message: `${message}; did you mean ${suggestion}?`, suggestion }
}

export interface RouseErrorOptions {
  readonly errors?: readonly FieldError[] | undefined
  readonly retryAfterSeconds?: number | undefined
  /** Additional members of the problem, by name. */
  readonly facts?: Readonly<Record<string, number | string>> | undefined
  /** For the log; never shown to the client. */
  readonly cause?: unknown
}

/** An error that is reported to an API client. Callers branch on `code`. */
export class RouseError extends Error {
  override readonly name = 'RouseError'
  readonly code: ErrorCode
  readonly detail: string
  readonly errors: readonly FieldError[] | undefined
  readonly retryAfterSeconds: number | undefined
  readonly facts: Readonly<Record<string, number | string>>

  constructor(code: ErrorCode, detail?: string, options: RouseErrorOptions = {}) {
    const kind = errorKind(code)
    super(detail ?? kind.title, { cause: options.cause })
    this.code = code
    this.detail = detail ?? kind.title
    this.errors = options.errors
    this.retryAfterSeconds = options.retryAfterSeconds ?? kind.retryAfterSeconds
    this.facts = options.facts ?? {}
  }

  get status(): number {
    return errorKind(this.code).status
  }
}

/** The error for one invalid field. */
export function fieldError(code: ErrorCode, field: string, message: string): RouseError {
  return fieldErrors(code, [{ field, message }])
}

/** The maximum number of reported fields; the rest are omitted. */
export const fieldErrorsMax = 20

/** The error for several invalid fields. Its detail names the first one. */
export function fieldErrors(code: ErrorCode, errors: readonly FieldError[]): RouseError {
  const [first] = errors
  const detail = first === undefined ? undefined : `${first.field} ${first.message}`
  return new RouseError(code, detail, { errors: errors.slice(0, fieldErrorsMax) })
}

/** The body of an `application/problem+json` response. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly code: ErrorCode
  readonly detail: string
  readonly retryable: boolean
  readonly requestId: string
  readonly node: string
  readonly errors?: readonly FieldError[]
  /** Only for `consumer_transaction_open`. */
  readonly leases?: number
  readonly oldestLeaseAgeMs?: number
  /** Only for `forbidden`: the missing grant. */
  readonly grant?: string
  /** Repeats the detail under the name that old clients read. */
  readonly error: string
}

/** Any error other than a RouseError becomes `internal`, without its message. */
export function toProblem(
  error: unknown,
  { requestId, node }: { readonly requestId: string; readonly node: string },
): Problem {
  const known = error instanceof RouseError ? error : new RouseError('internal')
  const { status, title, retryable } = errorKind(known.code)
  return {
    ...known.facts,
    type: `urn:rouse:error:${known.code}`,
    title,
    status,
    code: known.code,
    detail: known.detail,
    retryable,
    requestId,
    node,
    ...(known.errors === undefined ? {} : { errors: known.errors }),
    error: known.detail,
  }
}
