import { RouseError } from '../rouse-error.ts'

/**
 * If a function of Rouse has refused the call, its error: SQLSTATE RS400 for status 400, and so on. Any other
 * error is returned as it is.
 */
export function errorOfSql(error: unknown): unknown {
  const { code: state, message, detail } = Object(error) as Record<string, string>
  if (!/^RS\d{3}$/.test(state ?? '')) return error
  const status = Number(state?.slice(2))
  const { code = status === 409 ? 'lease_lost' : 'invalid_request', field } = readDetail(detail)
  return new RouseError(code, String(message), {
    status,
    cause: error,
    ...(field === undefined ? {} : { errors: [{ field, message: String(message) }] }),
  })
}

function readDetail(detail: unknown): { readonly code?: string; readonly field?: string } {
  try {
    return Object(JSON.parse(String(detail))) as { code?: string; field?: string }
  } catch {
    return {}
  }
}
