// JavaScript has no room for 12345678901234567890 or 1e999; a payload that holds such a number has to come back equal.
// So before parsing, numbers that would change are put into strings with a mark that nobody can guess, and after the
// payload was written as text again, the marks are taken off.
import { randomUUID } from 'node:crypto'

/** Cheap, and true too often rather than too seldom: digits beyond 2^53, or an exponent of three digits. */
export const mayLoseDigits = /\d{16}|\d[eE][+-]?\d{3}/

const mark = `rouse-number-${randomUUID()}:`
const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
const markedNumber = new RegExp(`"${mark}([^"]*)"`, 'g')

/** The text has to be valid JSON already. */
export function withMarkedNumbers(text: string): string {
  return text.replace(stringOrNumber, (token) => {
    return token.startsWith('"') || !mayLoseDigits.test(token) ? token : `"${mark}${token}"`
  })
}

export function withExactNumbers(text: string): string {
  return text.includes(mark) ? text.replace(markedNumber, '$1') : text
}
