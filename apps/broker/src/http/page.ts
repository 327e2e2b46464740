// Pages of lists ordered by name. A cursor is the last name of the previous page, in base64url.
import { fieldError, type Limits, parseDecimal, readFields } from '@rouse/protocol'

export interface Page {
  /** Undefined: the page starts with the first name. */
  readonly after: string | undefined
  readonly limit: number
}

/** Without a limit the page has the maximum length. */
export function readPage(query: unknown, { pageSizeMax }: Limits): Page {
  const { limit, cursor } = query as Readonly<Record<string, unknown>>
  return readFields({
    after: () => (cursor === undefined ? undefined : readCursor(cursor)),
    limit: () =>
      limit === undefined
        ? pageSizeMax
        : parseDecimal('limit', limit, { min: 1, max: pageSizeMax }),
  })
}

/** Null on the last page. */
export function cursorAfter(names: readonly string[], { limit }: Page): string | null {
  const last = names.at(-1)
  if (last === undefined || names.length < limit) return null
  return Buffer.from(last, 'utf8').toString('base64url')
}

function readCursor(text: unknown): string {
  const name = typeof text === 'string' ? Buffer.from(text, 'base64url').toString('utf8') : ''
  const isOurs = name !== '' && Buffer.from(name, 'utf8').toString('base64url') === text
  if (isOurs && !name.includes('\u0000')) return name
  throw fieldError('invalid_request', 'cursor', 'must be a cursor from a response')
}
