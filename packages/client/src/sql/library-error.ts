// Libraries wrap the errors of PostgreSQL in their own. The functions of this package read PostgreSQL's.

/** How deep the error of PostgreSQL may be. */
const depthMax = 5

/** Runs a query. If a function of Rouse has refused it, rejects with the error of PostgreSQL. */
export async function unwrapped(result: PromiseLike<unknown>): Promise<unknown> {
  try {
    return await result
  } catch (error) {
    throw refusalIn(error, depthMax) ?? error
  }
}

/** Looks for an SQLSTATE of Rouse, in the error itself and in the errors that it wraps. */
function refusalIn(error: unknown, depth: number): Error | undefined {
  if (typeof error !== 'object' || error === null || depth === 0) return undefined
  const { code, originalCode, message, originalMessage, detail } = error as Record<string, unknown>
  const state = [code, originalCode].find((one) => /^RS\d{3}$/.test(String(one)))
  if (state !== undefined) {
    const text = typeof originalMessage === 'string' ? originalMessage : String(message)
    return Object.assign(new Error(text, { cause: error }), { code: state, detail })
  }
  const { cause, meta, driverAdapterError } = error as Record<string, unknown>
  for (const inner of [cause, meta, driverAdapterError]) {
    const found = refusalIn(inner, depth - 1)
    if (found !== undefined) return found
  }
  return undefined
}
