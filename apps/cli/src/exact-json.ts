// Parses and writes JSON so that numbers keep all their digits. JavaScript reads 12345678901234567890 as
// 12345678901234567000, and it reads 1e400 as Infinity, which it writes as null. A payload must not change
// like that. `parseExact` therefore turns a number that would lose digits into a string with a random prefix
// that no other process knows, and `stringifyExact` turns it back.
import { randomUUID } from 'node:crypto'

const mark = `${randomUUID()} `
const marked = new RegExp(`"${mark}([^"]*)"`, 'g')

/** A cheap test. It matches every number that may lose digits, and some others. */
const mayLoseDigits = /[\d.]{16}|\d[eE][+-]?\d{3}/

const numberAt = /-?\d[\d.eE+-]*/y

/** Like JSON.parse, but numbers that would lose digits become strings for `stringifyExact`. */
export function parseExact(text: string): unknown {
  // Throws on invalid JSON first, so that the text is known to be well-formed.
  const value: unknown = JSON.parse(text)
  return mayLoseDigits.test(text) ? JSON.parse(markNumbers(text)) : value
}

export function stringifyExact(value: unknown, indent?: number): string {
  return (JSON.stringify(value, null, indent) ?? '').replace(marked, '$1')
}

function markNumbers(text: string): string {
  let result = ''
  let from = 0
  for (let at = 0; at < text.length; ) {
    if (text[at] === '"') {
      at = endOfString(text, at)
      continue
    }
    numberAt.lastIndex = at
    const number = numberAt.exec(text)?.[0]
    if (number === undefined) at += 1
    else {
      if (losesDigits(number)) {
        result += `${text.slice(from, at)}"${mark}${number}"`
        from = at + number.length
      }
      at += number.length
    }
  }
  return result + text.slice(from)
}

function endOfString(text: string, start: number): number {
  let at = start + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

function losesDigits(number: string): boolean {
  return mayLoseDigits.test(number) && String(Number(number)) !== number
}
