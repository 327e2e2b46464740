// Parses the JSON bodies of requests without losing precision in the user's own JSON.
//
// JavaScript cannot represent 12345678901234567890 or 1e999, but a payload with such a number must be
// delivered with all its digits. The body is parsed normally, so that validation sees numbers. In addition,
// members with the user's own JSON (payload, headers, data, result, progress) keep their source text if it contains such a
// number. The text is stored under a symbol on the object that contains the member. A client cannot forge
// this text, because JSON cannot express a symbol.
import { isUtf8 } from 'node:buffer'
import { RouseError } from '@rouse/protocol'

const exactNames = new Set(['payload', 'headers', 'data', 'result', 'progress'])

/**
 * Matches every number that may lose digits, and some others: 16 digits, or a three-digit exponent. The character in
 * front keeps the search out of most strings: ids are full of digits.
 */
const mayLoseDigits = /(?:^|[\s:,[])-?(?:\d{16}|[\d.]{17}|[\d.]*\d[eE][+-]?\d{3})/

/** An item in a transaction is five levels deep: body, operations, operation, items, item. */
const depthMax = 5

const exactTexts = Symbol('exact texts')

interface Holder {
  [exactTexts]?: Record<string, string | undefined>
}

/**
 * Fastify's own parser rejects the key `__proto__`, but a payload may contain it. JSON.parse makes it an own
 * property and JSON.stringify writes it back, so the payload does not change. Returns undefined for an empty
 * body.
 */
export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) return undefined
  // Decoding would replace invalid bytes with U+FFFD, and the payload would change.
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

/** Omits the text that V8 quotes from the body: responses may be logged, and bodies must not be. */
function reason(error: unknown): string {
  const text = error instanceof Error ? error.message : ''
  return /at position \d+/.exec(text)?.[0] ?? 'it ends too early or is malformed'
}

/** Removes fields that are null: old clients send null for an absent field. The field `keep` may be null. */
export function withoutNulls(value: unknown, keep?: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const record = value as Record<string, unknown>
  for (const key of Object.keys(record)) {
    if (record[key] === null && key !== keep) delete record[key]
  }
  return record
}

/** The member as compact JSON, with numbers as written. Undefined if JSON.stringify gives the same text. */
export function exactTextOf(holder: object, name: string): string | undefined {
  return (holder as Holder)[exactTexts]?.[name]
}

/** Takes a valid JSON text and the result of JSON.parse. */
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

/** Scans the text once, in linear time and without recursion below `depthMax`. */
class ExactTextScanner {
  readonly #text: string
  #at = 0
  /** The first backslash at or after the position of the last search. */
  #escapeAt = -1

  constructor(text: string) {
    this.#text = text
    this.#skipSpace()
  }

  /** `value` is the parsed value at this position. For a name that occurs twice it is the last value. */
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

  /** Moves to the next member of an object or array. Returns false at its end. */
  #nextMember(close: number): boolean {
    this.#skipSpace()
    const char = this.#text.charCodeAt(this.#at)
    if (char === close || char === code.comma) this.#at += 1
    this.#skipSpace()
    return char !== close
  }

  /** Reads a name, its colon and the white space around it. */
  #readName(): string {
    const start = this.#at
    const isEscaped = this.#skipString()
    const token = this.#text.slice(start, this.#at)
    this.#skipSpace()
    this.#at += 1
    this.#skipSpace()
    return isEscaped ? (JSON.parse(token) as string) : token.slice(1, -1)
  }

  /** Skips a value of any depth. Returns its text if a number in it needs every digit. */
  #readText(): string | undefined {
    let text = ''
    let from = this.#at
    let depth = 0
    let isExact = false
    do {
      const start = this.#at
      switch (this.#text.charCodeAt(start)) {
        case code.quote:
          // Shortens escapes as JSON.stringify does: otherwise a letter that is written as a six-byte escape
          // would count as six bytes for the size limit.
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

  /** Skips a string. Returns whether it contains escapes. */
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

  /**
   * Caches the result: most texts have no backslash, and a new search for every string would take quadratic
   * time.
   */
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

/** Digits, the point, the signs, and both letters of an exponent. */
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
