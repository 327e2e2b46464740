// Who holds a lease: the node and worker that delivered the messages, and the name of the consumer, if it gave
// one. Both are stored as one text. Names of consumers contain no control characters.
const separator = '\u001f'

export interface Holder {
  readonly holder: string | null
  readonly consumer: string | null
}

export function holderOf(worker: string, consumer: string | undefined): string {
  return consumer === undefined ? worker : `${worker}${separator}${consumer}`
}

export function readHolder(stored: string | null): Holder {
  const at = stored?.lastIndexOf(separator) ?? -1
  if (stored === null || at < 0) return { holder: stored, consumer: null }
  return { holder: stored.slice(0, at), consumer: stored.slice(at + 1) }
}
