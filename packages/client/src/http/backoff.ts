import type { Random } from '../randomness.ts'

export const backoffBaseMs = 100
export const backoffMaxMs = 5_000

/** The delay after consecutive failures: exponential, with jitter so that clients do not retry in step. */
export function backoffMs(failures: number, random: Random): number {
  const ms = Math.min(backoffBaseMs * 2 ** (failures - 1), backoffMaxMs)
  return ms * (0.5 + random() / 2)
}

const retryAfterMsMax = 60_000

/** Parses `Retry-After`: seconds or a date. Undefined if absent or invalid. */
export function retryAfterMs(header: string | undefined, wallMs: () => number): number | undefined {
  if (header === undefined) return undefined
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - wallMs()
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), retryAfterMsMax) : undefined
}
