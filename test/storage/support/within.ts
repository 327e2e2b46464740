/** Fails if a call does not return in time. */
export async function within<Result>(call: Promise<Result>, ms: number): Promise<Result> {
  const timer = new AbortController()
  const late = new Promise<never>((_, reject) => {
    const timeout = setTimeout(() => reject(new Error(`not within ${ms} ms`)), ms)
    timer.signal.addEventListener('abort', () => clearTimeout(timeout))
  })
  try {
    return await Promise.race([call, late])
  } finally {
    timer.abort()
  }
}
