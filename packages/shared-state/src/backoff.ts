// The group backoff: the interval between fallback polls of one wait group. It starts at the base interval.
// From the threshold on, each empty poll multiplies it, up to the maximum. Any sign of work resets it.
import type { SharedStateSettings } from './settings.ts'

export interface Backoff {
  readonly intervalMs: number
  readonly consecutiveEmpty: number
}

type BackoffSettings = Pick<
  SharedStateSettings,
  'baseIntervalMs' | 'maxIntervalMs' | 'backoffThreshold' | 'backoffMultiplier'
>

export function startBackoff({ baseIntervalMs }: Pick<BackoffSettings, 'baseIntervalMs'>): Backoff {
  return { intervalMs: baseIntervalMs, consecutiveEmpty: 0 }
}

export function afterEmpty(backoff: Backoff, settings: BackoffSettings): Backoff {
  const consecutiveEmpty = backoff.consecutiveEmpty + 1
  const intervalMs =
    consecutiveEmpty < settings.backoffThreshold
      ? backoff.intervalMs
      : Math.min(backoff.intervalMs * settings.backoffMultiplier, settings.maxIntervalMs)
  return { intervalMs, consecutiveEmpty }
}
