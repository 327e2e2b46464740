// JSON whose numbers keep all their digits. JavaScript reads 12345678901234567890 as 12345678901234567000 and 1e400 as
// Infinity, which it writes as null; a payload must neither be stored nor shown like that. A number that would lose
// something is a text in between, with a mark before it that no other process knows.
import { randomUUID } from 'node:crypto'

const mark = `${randomUUID()} `
const marked = new RegExp(`"${mark}([^"]*)"`, 'g')

/** Cheap, and true too often rather than too seldom. */
const mayLoseDigits = /[\d.]{16}|\d[eE][+-]?\d{3}/

const numberAt = /-?\d[\d.eE+-]*/y

/** As JSON.parse, but what is made of a number that JavaScript cannot hold is only fit for `stringifyExact`. */
export function parseExact(text: string): unknown {
  // What is no JSON is found first: the text is then known to be well-formed.
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
