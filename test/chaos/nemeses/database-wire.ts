// Faults of the connections between one node and the database.
import type { TcpMode } from '../network/tcp-relay.ts'
import { type Nemesis, nemesis, pause, pick, untilReady } from './nemesis.ts'

/** The connections behave as behind a firewall that drops packets. */
export const databaseDrop = broken('database-drop', { kind: 'drop' })
/** The connections behave as behind a firewall that rejects packets: every connection is reset. */
export const databaseReject = broken('database-reject', { kind: 'reject' })

function broken(name: string, mode: TcpMode): Nemesis {
  return nemesis(name, async ({ nodes, wires }, { random, seconds }) => {
    const index = pick([...nodes.keys()], random)
    const relays = wires.database[index] ?? []
    try {
      for (const relay of relays) relay.set(mode)
      await pause(seconds)
    } finally {
      for (const relay of relays) relay.set({ kind: 'forward' })
    }
    const hit = nodes.filter((_, i) => i === index)
    await untilReady(hit)
    return { target: hit.map(({ id }) => id).join() }
  })
}
