// Sends datagrams that look like gossip but have no valid signature. Runs in a separate process, so that
// sending them does not slow down the bench.
import { fork } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Overheard } from './nodes.ts'

export interface Flood {
  readonly sent: number
  readonly perSecond: number
}

/** Starts the flood. Resolves, once it has started, to the function that stops it. */
export async function startFlood(
  target: { readonly host: string; readonly port: number },
  perSecond: number,
  { cluster, keyId }: Overheard,
): Promise<() => Promise<Flood>> {
  const self = fileURLToPath(import.meta.url)
  const child = fork(self, [target.host, ...[target.port, perSecond, cluster, keyId].map(String)])
  await once(child, 'message')
  return async () => {
    child.send('stop')
    const [flood] = (await once(child, 'message')) as [Flood]
    return flood
  }
}

function run([host = '', ...numbers]: readonly string[]): void {
  const [port = 0, perSecond = 0, cluster = 0, keyId = 0] = numbers.map(Number)
  const socket = createSocket('udp4')
  const startedAt = performance.now()
  // Every field that can be read on the wire is correct, so that only the signature reveals the forgery.
  const datagram = Buffer.alloc(120, 7)
  datagram.write('RG\u0001\0', 0, 'latin1')
  datagram.writeUInt16BE(keyId << 8, 4)
  datagram.writeUInt16BE(datagram.length, 6)
  datagram.writeUInt32BE(cluster, 8)
  let sent = 0
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1_000) * perSecond
    while (sent < due) {
      datagram.writeUInt32BE(sent >>> 0, 60)
      socket.send(datagram, port, host)
      sent += 1
    }
  }, 2)
  process.send?.('begun')
  process.on('message', () => {
    clearInterval(timer)
    const seconds = (performance.now() - startedAt) / 1_000
    process.send?.({ sent, perSecond: Math.round(sent / seconds) }, () => process.exit(0))
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) run(process.argv.slice(2))
