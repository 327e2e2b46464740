import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'

export interface EventuallyOptions {
  readonly timeoutMs?: number
  readonly intervalMs?: number
}

type Truthy<Value> = Exclude<Value, undefined | null | false | 0 | ''>

/** Calls `ask` repeatedly until the result is truthy, and resolves with that result. On timeout it fails with
 * the last result or the last error, which says more than "timed out". */
export async function eventually<Value>(
  ask: () => Value | Promise<Value>,
  { timeoutMs = 5_000, intervalMs = 20 }: EventuallyOptions = {},
): Promise<Truthy<Awaited<Value>>> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const { value, error } = await attempt(ask)
    if (value) return value as Truthy<Awaited<Value>>
    if (performance.now() >= deadline) {
      const last =
        error === undefined ? `last result ${inspect(value)}` : `last error ${inspect(error)}`
      throw new Error(`still false after ${timeoutMs} ms; ${last}`, { cause: error })
    }
    await delay(intervalMs)
  }
}

async function attempt<Value>(
  ask: () => Value | Promise<Value>,
): Promise<{ value?: Awaited<Value>; error?: unknown }> {
  try {
    return { value: await ask() }
  } catch (error) {
    return { error }
  }
}
