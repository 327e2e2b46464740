import { RouseError } from '../rouse-error.ts'

/** How deep libraries nest the error of PostgreSQL in their own. */
const depthMax = 5

interface PostgresError {
  readonly state: string
  readonly message: string
  readonly detail: string
}

/**
 * If a function of Rouse has refused the call, its error: SQLSTATE RS400 for status 400, and so on. Any other
 * error is returned as it is.
 */
export function errorOfSql(error: unknown): unknown {
  const found = postgresErrorOf(error, depthMax)
  if (found === undefined) return error
  const status = Number(found.state.slice(2))
  const { code = status === 409 ? 'lease_lost' : 'invalid_request', field } = readDetail(
    found.detail,
  )
  return new RouseError(code, found.message, {
    status,
    cause: error,
    ...(field === undefined ? {} : { errors: [{ field, message: found.message }] }),
  })
}

/** Looks for an SQLSTATE of Rouse, in the error itself and in the errors that it wraps. */
function postgresErrorOf(error: unknown, depth: number): PostgresError | undefined {
  if (typeof error !== 'object' || error === null || depth === 0) return undefined
  const { code, originalCode, message, originalMessage, detail } = error as Record<string, unknown>
  const state = [code, originalCode].find(
    (one): one is string => typeof one === 'string' && /^RS\d{3}$/.test(one),
  )
  if (state !== undefined) {
    return {
      state,
      message: typeof originalMessage === 'string' ? originalMessage : String(message),
      detail: typeof detail === 'string' ? detail : '',
    }
  }
  const { cause, meta, driverAdapterError } = error as Record<string, unknown>
  for (const inner of [cause, meta, driverAdapterError]) {
    const found = postgresErrorOf(inner, depth - 1)
    if (found !== undefined) return found
  }
  return undefined
}

function readDetail(detail: string): { readonly code?: string; readonly field?: string } {
  try {
    return (JSON.parse(detail) ?? {}) as { code?: string; field?: string }
  } catch {
    return {}
  }
}
