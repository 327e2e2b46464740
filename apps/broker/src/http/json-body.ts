// Reads JSON bodies without losing anything of a user's own JSON.
//
// JavaScript cannot hold 12345678901234567890 or 1e999, and a payload with such a number has to come back with all its
// digits. The body is parsed plainly, so that every check sees its numbers as numbers. Only the members that hold a
// user's own JSON (payload, headers, data) keep their source text where a number in them needs it, under a symbol on the
// object they belong to. No JSON text can make a symbol, so no client can write what is kept there.
import { isUtf8 } from 'node:buffer'
import { RouseError } from '@rouse/protocol'

const exactNames = new Set(['payload', 'headers', 'data'])

/** Cheap, and true too often rather than too seldom: 16 digits, with or without a point, or an exponent of three. */
const mayLoseDigits = /\d{16}|[\d.]{17}|\d[eE][+-]?\d{3}/

/** An item of a transaction's operation is five levels deep: body, operations, operation, items, item. */
const depthMax = 5

const exactTexts = Symbol('exact texts')

interface Holder {
  [exactTexts]?: Record<string, string | undefined>
}

/**
 * Fastify's own parser refuses a key called `__proto__`; for a message that is a key like any other. JSON.parse makes
 * it a property of its own and JSON.stringify writes it again, so the payload comes back equal. No body is undefined.
 */
export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) return undefined
  // Decoding would put U+FFFD in the place of broken bytes, and the payload would not come back equal.
  if (!isUtf8(body)) throw new RouseError('invalid_request', 'the body is not valid UTF-8')
  const text = body.toString('utf8')
  try {
    const value: unknown = JSON.parse(text)
    keepExactTexts(text, value)
    return value
  } catch (error) {
    throw new RouseError('invalid_request', `the body is not valid JSON: ${reason(error)}`)
  }
}

/** V8 quotes the text around the fault. Bodies do not belong into answers that end up in logs. */
function reason(error: unknown): string {
  const text = error instanceof Error ? error.message : ''
  return /at position \d+/.exec(text)?.[0] ?? 'it ends too early or is malformed'
}

/** Old clients write null where they mean nothing. Only a payload may be null and mean it. */
export function withoutNulls(value: unknown, keep?: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const record = value as Record<string, unknown>
  for (const key of Object.keys(record)) {
    if (record[key] === null && key !== keep) delete record[key]
  }
  return record
}

/** The member's JSON text without spaces, every number as it was written; undefined where JSON.stringify gives the same. */
export function exactTextOf(holder: object, name: string): string | undefined {
  return (holder as Holder)[exactTexts]?.[name]
}

/** Takes a valid JSON text and what JSON.parse made of it. */
function keepExactTexts(text: string, value: unknown): void {
  if (mayLoseDigits.test(text)) new ExactTextScanner(text).walk(value, 1)
}

const code = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  openBracket: 0x5b,
  closeBracket: 0x5d,
  openBrace: 0x7b,
  closeBrace: 0x7d,
  f: 0x66,
  n: 0x6e,
  t: 0x74,
}

/** One pass over the text, in linear time and without recursion below `depthMax`. */
class ExactTextScanner {
  readonly #text: string
  #at = 0
  /** The first backslash at or after the place where it was last asked for. */
  #escapeAt = -1

  constructor(text: string) {
    this.#text = text
    this.#skipSpace()
  }

  /** `value` is what was parsed here; of a name that comes twice, the last one's. */
  walk(value: unknown, depth: number): void {
    const first = this.#text.charCodeAt(this.#at)
    if (depth > depthMax) this.#readText()
    else if (first === code.openBrace) this.#walkObject(value, depth)
    else if (first === code.openBracket) this.#walkArray(value, depth)
    else this.#readText()
  }

  #walkObject(value: unknown, depth: number): void {
    const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value)
    const record = isRecord ? (value as Record<string, unknown> & Holder) : undefined
    this.#at += 1
    while (this.#nextMember(code.closeBrace)) {
      const name = this.#readName()
      const isOwn = record !== undefined && Object.hasOwn(record, name)
      if (!exactNames.has(name)) {
        this.walk(isOwn ? record[name] : undefined, depth + 1)
        continue
      }
      const text = this.#readText()
      if (!isOwn || (text === undefined && record[exactTexts] === undefined)) continue
      record[exactTexts] ??= {}
      record[exactTexts][name] = text
    }
  }

  #walkArray(value: unknown, depth: number): void {
    const items: readonly unknown[] = Array.isArray(value) ? value : []
    this.#at += 1
    for (let i = 0; this.#nextMember(code.closeBracket); i += 1) this.walk(items[i], depth + 1)
  }

  /** Moves to the next member of an object or array; false: past its end. */
  #nextMember(close: number): boolean {
    this.#skipSpace()
    const char = this.#text.charCodeAt(this.#at)
    if (char === close || char === code.comma) this.#at += 1
    this.#skipSpace()
    return char !== close
  }

  /** A name, its colon and the spaces around it. */
  #readName(): string {
    const start = this.#at
    const isEscaped = this.#skipString()
    const token = this.#text.slice(start, this.#at)
    this.#skipSpace()
    this.#at += 1
    this.#skipSpace()
    return isEscaped ? (JSON.parse(token) as string) : token.slice(1, -1)
  }

  /** Moves past a value of any depth; its text where a number in it needs every digit. */
  #readText(): string | undefined {
    let text = ''
    let from = this.#at
    let depth = 0
    let isExact = false
    do {
      const start = this.#at
      switch (this.#text.charCodeAt(start)) {
        case code.quote:
          // As JSON.stringify writes it: six bytes for a letter would count against the size limit.
          if (this.#skipString()) {
            const string: unknown = JSON.parse(this.#text.slice(start, this.#at))
            text += this.#text.slice(from, start) + JSON.stringify(string)
            from = this.#at
          }
          break
        case code.openBrace:
        case code.openBracket:
          depth += 1
          this.#at += 1
          break
        case code.closeBrace:
        case code.closeBracket:
          depth -= 1
          this.#at += 1
          break
        case code.comma:
        case code.colon:
          this.#at += 1
          break
        case code.f:
          this.#at += 'false'.length
          break
        case code.n:
        case code.t:
          this.#at += 'null'.length
          break
        default:
          this.#skipNumber()
          if (this.#at > start) isExact ||= mayLoseDigits.test(this.#text.slice(start, this.#at))
          else {
            this.#skipSpace()
            text += this.#text.slice(from, start)
            from = this.#at
          }
      }
    } while (depth > 0)
    return isExact ? text + this.#text.slice(from, this.#at) : undefined
  }

  #skipSpace(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at += 1
  }

  #skipNumber(): void {
    while (isPartOfNumber(this.#text.charCodeAt(this.#at))) this.#at += 1
  }

  /** Moves past a string; true: it holds escapes. */
  #skipString(): boolean {
    const start = this.#at + 1
    let at = start
    let quote = this.#text.indexOf('"', at)
    for (;;) {
      const escape = this.#escapeAfter(at)
      if (escape > quote) break
      at = escape + 2
      if (at > quote) quote = this.#text.indexOf('"', at)
    }
    this.#at = quote + 1
    return at > start
  }

  /** Remembered, as most texts have none: searching the rest again for every string would take quadratic time. */
  #escapeAfter(at: number): number {
    if (this.#escapeAt < at) {
      const found = this.#text.indexOf('\\', at)
      this.#escapeAt = found === -1 ? this.#text.length : found
    }
    return this.#escapeAt
  }
}

function isSpace(char: number): boolean {
  return char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09
}

/** Digits, the point, the signs, and the two letters of an exponent. */
function isPartOfNumber(char: number): boolean {
  return (
    (char >= 0x30 && char <= 0x39) ||
    char === 0x2e ||
    char === 0x2d ||
    char === 0x2b ||
    char === 0x65 ||
    char === 0x45
  )
}
