// Pages of lists ordered by name. A cursor is the last name of the previous page, in base64url.
import { fieldError, type Limits, parseDecimal, parseTime, readFields } from '@rouse/protocol'

export interface Page {
  /** Undefined: the page starts with the first name. */
  readonly after: string | undefined
  readonly limit: number
}

/**
 * A page has `pageSizeMax` entries if the query sets no limit. `max`: the highest limit that the list allows.
 */
export function readPage(query: unknown, { pageSizeMax }: Limits, max = pageSizeMax): Page {
  const { limit, cursor } = query as Readonly<Record<string, unknown>>
  return readFields({
    after: () => (cursor === undefined ? undefined : readCursor(cursor)),
    limit: () =>
      limit === undefined ? pageSizeMax : parseDecimal('limit', limit, { min: 1, max }),
  })
}

/** Null on the last page. */
export function cursorAfter(names: readonly string[], { limit }: Page): string | null {
  const last = names.at(-1)
  if (last === undefined || names.length < limit) return null
  return Buffer.from(last, 'utf8').toString('base64url')
}

const offsetMax = 1_000_000

/** How many entries to skip. Existing clients turn pages this way. */
export function readOffset({ offset }: Readonly<Record<string, unknown>>): number {
  return offset === undefined ? 0 : parseDecimal('offset', offset, { min: 0, max: offsetMax })
}

export function readTime(field: string, time: unknown): Date | undefined {
  return time === undefined ? undefined : new Date(parseTime(field, time))
}

/** PostgreSQL cannot store U+0000, so no name contains it. */
export function readText(field: string, text: unknown): string {
  if (typeof text === 'string' && !text.includes('\u0000')) return text
  throw fieldError('invalid_request', field, 'must be a string without U+0000')
}

function readCursor(text: unknown): string {
  const name = typeof text === 'string' ? Buffer.from(text, 'base64url').toString('utf8') : ''
  const isOurs = name !== '' && Buffer.from(name, 'utf8').toString('base64url') === text
  if (isOurs && !name.includes('\u0000')) return name
  throw fieldError('invalid_request', 'cursor', 'must be a cursor from a response')
}
