// Strict parsers for query strings: text that is not exactly a value is refused; nothing is trimmed, rounded
// or guessed. A repeated parameter arrives as a list and is refused.
import { fieldError } from './errors.ts'

export interface Range {
  readonly min: number
  readonly max: number
}

const decimal = /^(0|[1-9][0-9]{0,15})$/

/** A decimal integer: digits only, without leading zeros. */
export function parseDecimal(field: string, text: unknown, { min, max }: Range): number {
  const value = typeof text === 'string' && decimal.test(text) ? Number(text) : Number.NaN
  if (!(value >= min && value <= max)) {
    throw fieldError('invalid_request', field, `must be an integer from ${min} to ${max}`)
  }
  return value
}

export function parseBoolean(field: string, text: unknown): boolean {
  if (text === 'true') return true
  if (text === 'false') return false
  throw fieldError('invalid_request', field, 'must be true or false')
}

export function parseChoice<const C extends string>(
  field: string,
  text: unknown,
  choices: readonly C[],
): C {
  const choice = choices.find((one) => one === text)
  if (choice !== undefined) return choice
  throw fieldError('invalid_request', field, `must be ${choices.join(' or ')}`)
}

const dateTime =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:Z|[+-](\d{2}):(\d{2}))$/

/** A date and time with a zone (RFC 3339), in milliseconds since 1970. */
export function parseTime(field: string, text: unknown): number {
  const parts = typeof text === 'string' ? dateTime.exec(text) : null
  const ms = parts !== null && isOnTheCalendar(parts) ? Date.parse(parts[0]) : Number.NaN
  if (Number.isNaN(ms)) {
    throw fieldError('invalid_request', field, 'must be a time such as 2030-01-31T12:00:00Z')
  }
  return ms
}

/** Whether the date exists. Date.parse accepts 31 February and reads it as 3 March. */
function isOnTheCalendar(parts: RegExpExecArray): boolean {
  const [year = 0, month = 0, day = 0, , , second = 0, zoneHour = 0, zoneMinute = 0] = parts
    .slice(1)
    .map((part) => Number(part ?? 0))
  const lastDay = new Date(Date.UTC(year, month, 0)).getUTCDate()
  return day >= 1 && day <= lastDay && second < 60 && zoneHour < 24 && zoneMinute < 60
}
