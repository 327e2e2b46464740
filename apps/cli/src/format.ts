// Parses values of the command line and formats values for a terminal.
import { InvalidArgumentError } from 'commander'
import type { Json } from './api.ts'
import { stringifyExact } from './exact-json.ts'

const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** `250ms`, `10s`, `5m`, `2h`, `1d`; a bare number is in seconds. */
export function durationMs(text: string): number {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text) ?? []
  if (amount === undefined)
    throw new InvalidArgumentError('Write a duration such as 250ms, 10s, 5m or 2h.')
  return Math.round(Number(amount) * unitsMs[unit as keyof typeof unitsMs])
}

export function count(text: string): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) {
    throw new InvalidArgumentError('Write a whole number.')
  }
  return value
}

/** `4.2s`, `9m12s`, `3h05m`, `12d07h`. */
export function ago(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return '–'
  const seconds = Math.max(0, ms) / 1_000
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}m${String(Math.floor(seconds % 60)).padStart(2, '0')}s`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours}h${String(minutes % 60).padStart(2, '0')}m`
  return `${Math.floor(hours / 24)}d${String(hours % 24).padStart(2, '0')}h`
}

export function since(time: string | null | undefined, nowMs: number): string {
  return time === null || time === undefined ? '–' : ago(nowMs - Date.parse(time))
}

export function messageCount(count: number): string {
  return count === 1 ? '1 message' : `${count.toLocaleString('en-US')} messages`
}

/** A time as ISO text; a bare date is midnight UTC. */
export function time(text: string): string {
  const atMs = Date.parse(text)
  if (Number.isNaN(atMs))
    throw new InvalidArgumentError('Write a time such as 2026-11-17T08:00:00Z.')
  return new Date(atMs).toISOString()
}

/** Collects the values of an option that may be repeated. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** Describes a node that is missing from the cluster stats. */
export function absence({ id, state, error }: Json): string {
  return `${id} ${state === 'dead' ? 'is dead' : 'is unavailable'}: ${error}`
}

/** Formats a value on one line, cut to a maximum length. */
export function brief(value: unknown, most = 60): string {
  const text = stringifyExact(value)
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`
}
