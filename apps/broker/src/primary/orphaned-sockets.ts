// Closes connections that were on their way to a worker when it died. `node:cluster` sends a connection over
// the worker's channel and closes its own copy when the worker confirms it. If the worker is killed first,
// Node 20 and 22 keep the copy open permanently, and the client waits on a connection that no process serves.
// SCHED_NONE makes no such copies, but distributes badly: of 1,000 sequential connections it gave one of four
// idle workers 523 and another 24, whereas round-robin gives each 250.
import type { Worker } from 'node:cluster'

interface Connection {
  close(): void
}

/** The part of Node's internal protocol used here. If it changes, nothing is tracked or closed. */
interface Handing {
  readonly act?: unknown
  readonly seq?: unknown
}

/** Closes the connections that a worker had been sent and had not confirmed when it died. */
export function closeUntaken(worker: Worker): void {
  const { process } = worker
  const untaken = new Map<unknown, Connection>()
  const send = process.send.bind(process) as (...args: unknown[]) => boolean
  process.send = (message: unknown, handle?: unknown, ...rest: unknown[]) => {
    const { act, seq } = (message ?? {}) as Handing
    if (act === 'newconn' && handle) untaken.set(seq, handle as Connection)
    return send(message, handle, ...rest)
  }
  // Runs after Node's own handler: by then a connection that the worker rejected belongs to another worker,
  // under another number.
  process.on('internalMessage', ({ ack }: { readonly ack?: unknown }) => untaken.delete(ack))
  // Either event may come first, and Node still sends connections in between.
  for (const event of ['exit', 'disconnect']) {
    process.on(event, () => {
      for (const connection of untaken.values()) connection.close()
      untaken.clear()
    })
  }
}
