// Numbers, durations and times as text. Numbers have a fixed width in tables.
import { nowMs } from '../clock.ts'

const grouped = new Intl.NumberFormat('en-US')

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : grouped.format(value)
}

export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–'
  if (value === 0) return '0'
  return value < 10 ? value.toFixed(1) : grouped.format(Math.round(value))
}

/** Clocks differ, so a time may be slightly in the future: no duration is negative. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return '–'
  const positive = Math.max(0, ms)
  if (positive < 0.005) return '0 ms'
  if (positive < 1) return `${positive.toFixed(2)} ms`
  if (positive < 10) return `${positive.toFixed(1)} ms`
  if (positive < 1_000) return `${Math.round(positive)} ms`
  const seconds = positive / 1_000
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 60) return `${Math.round(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}m ${Math.floor(seconds % 60)}s`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours}h ${minutes % 60}m`
  return `${Math.floor(hours / 24)}d ${hours % 24}h`
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–'
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let rest = value
  let unit = 0
  while (rest >= 1_000 && unit < units.length - 1) {
    rest /= 1_000
    unit += 1
  }
  return `${rest < 10 && unit > 0 ? rest.toFixed(1) : Math.round(rest)} ${units[unit]}`
}

export function ago(iso: string | null | undefined): string {
  if (iso === null || iso === undefined) return 'never'
  const ms = nowMs() - Date.parse(iso)
  return ms < 1_000 ? 'just now' : `${duration(ms)} ago`
}

export function until(iso: string | null | undefined): string {
  if (iso === null || iso === undefined) return '–'
  const ms = Date.parse(iso) - nowMs()
  return ms <= 0 ? 'now' : `in ${duration(ms)}`
}

/** The local time, with the date if it is not today's. */
export function time(iso: string | null | undefined): string {
  if (iso === null || iso === undefined) return '–'
  const at = new Date(iso)
  const clock = at.toLocaleTimeString('en-GB')
  const isToday = at.toDateString() === new Date(nowMs()).toDateString()
  return isToday ? clock : `${at.toLocaleDateString('en-CA')} ${clock}`
}

const isoTime = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g

/** Sentences of the nodes have times in UTC; people read local ones. */
export function withLocalTimes(text: string): string {
  return text.replace(isoTime, (iso) => time(iso))
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`
}
