import { RouseError } from './rouse-error.ts'

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Milliseconds, or a number with its unit: `'250ms'`, `'30s'`, `'10m'`, `'2h'`, `'1d'`. */
export type Duration = number | `${number}${keyof typeof unitMs}`

/** Returns whole milliseconds. */
export function parseDuration(duration: Duration, field: string): number {
  const ms = typeof duration === 'number' ? duration : readText(duration)
  if (Number.isFinite(ms) && ms >= 0) return Math.round(ms)
  throw new RouseError(
    'invalid_delay',
    `${field} must be a number of milliseconds or a text like '10m', not ${JSON.stringify(duration)}`,
  )
}

function readText(text: string): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? []
  return number === '' ? Number.NaN : Number(number) * unitMs[unit as keyof typeof unitMs]
}
