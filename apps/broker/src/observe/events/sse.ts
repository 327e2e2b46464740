// Server-sent events as text. Data is JSON in one line, so an event has one `data` line.

export interface SentEvent {
  readonly id: string | undefined
  readonly name: string
  readonly data: string
}

export function eventText(name: string, json: string, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${json}\n\n`
}

/** A longer text without the end of an event does not come from a node. */
const pendingMax = 4 * 1024 * 1024

/** Collects events from the pieces of a stream. */
export class EventReader {
  #pending = ''

  /** The events that this piece of text completes. Throws if the text cannot come from a node. */
  read(piece: string): SentEvent[] {
    const parts = (this.#pending + piece).split('\n\n')
    this.#pending = parts.pop() ?? ''
    if (this.#pending.length > pendingMax) throw new Error('its response has no events')
    return parts.flatMap(readEvent)
  }
}

function readEvent(text: string): SentEvent[] {
  let id: string | undefined
  let name = ''
  let data = ''
  for (const line of text.split('\n')) {
    if (line.startsWith('id: ')) id = line.slice(4)
    else if (line.startsWith('event: ')) name = line.slice(7)
    else if (line.startsWith('data: ')) data = line.slice(6)
  }
  return name === '' || data === '' ? [] : [{ id, name, data }]
}
