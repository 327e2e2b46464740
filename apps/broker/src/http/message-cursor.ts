// Cursors of lists of messages: where in the log, among the scheduled messages, or among the cancelled ones the
// next page starts.
import { fieldError } from '@rouse/protocol'

/** The positions that `rouse.list_messages_v2` returns, by place; the place alone is its start. */
const positionForms: Readonly<Record<string, RegExp>> = {
  log: /^\d{1,18}$/,
  scheduled: /^-?\d{1,16} \d{1,18}$/,
  cancelled: /^-?\d{1,16} [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
}

/** A cursor is the place, and the partition and the position in it as base64url. */
export function messageCursor([place = '', ...position]: readonly string[]): string {
  if (position.length === 0) return place
  return `${place}-${Buffer.from(JSON.stringify(position), 'utf8').toString('base64url')}`
}

export function readMessageCursor(cursor: unknown): readonly string[] {
  const [, place = '', text] = /^([a-z]+)(?:-(.+))?$/.exec(String(cursor)) ?? []
  const form = Object.hasOwn(positionForms, place) ? positionForms[place] : undefined
  const [partition, ...position] = text === undefined ? [] : positionOf(text)
  const isKnown =
    form !== undefined &&
    (text === undefined || (partition !== undefined && form.test(position.join(' '))))
  if (!isKnown) throw fieldError('invalid_request', 'cursor', 'must be a cursor from a response')
  return partition === undefined ? [place] : [place, partition, ...position]
}

function positionOf(text: string): readonly string[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    const isList = Array.isArray(parts) && parts.every((part) => typeof part === 'string')
    return isList && !parts.some((part: string) => part.includes('\u0000')) ? parts : []
  } catch {
    return []
  }
}
