// Connections on their way from the primary to a worker. `node:cluster` takes turns: it sends a connection over the
// worker's channel and closes its own copy when the worker says that it has it. A worker that is killed before that
// says nothing, and Node 20 and 22 keep the copy for ever: the client, connected to nobody, would wait as long. Leaving
// the choice to the system (SCHED_NONE) has no such copies, but of 1,000 connections, one after the other, it gave one
// of four idle workers 523 and another 24, where turns give each 250.
import type { Worker } from 'node:cluster'

interface Connection {
  close(): void
}

/** What Node says to a worker, as far as it matters here. Said otherwise, nothing is kept and nothing is closed. */
interface Handing {
  readonly act?: unknown
  readonly seq?: unknown
}

/** Closes what a worker was handed and had not taken when it died. */
export function closeUntaken(worker: Worker): void {
  const { process } = worker
  const untaken = new Map<unknown, Connection>()
  const send = process.send.bind(process) as (...args: unknown[]) => boolean
  process.send = (message: unknown, handle?: unknown, ...rest: unknown[]) => {
    const { act, seq } = (message ?? {}) as Handing
    if (act === 'newconn' && handle) untaken.set(seq, handle as Connection)
    return send(message, handle, ...rest)
  }
  // After Node has heard the same: what the worker refused is then another's, under another number.
  process.on('internalMessage', ({ ack }: { readonly ack?: unknown }) => untaken.delete(ack))
  // Either may be the first, and between them Node still hands over.
  for (const event of ['exit', 'disconnect']) {
    process.on(event, () => {
      for (const connection of untaken.values()) connection.close()
      untaken.clear()
    })
  }
}
