/** Settles with the promise, or fails after `ms`, so that no fault can hang a run. */
export async function within<Value>(
  ms: number,
  what: string,
  promise: Promise<Value>,
): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, over])
  } finally {
    clearTimeout(timer)
    promise.catch(() => {})
  }
}
