// Sends what looks like gossip and is not signed by anybody: in a process of its own, so that it costs the nodes their
// time and not the bench's.
import { fork } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface Flood {
  readonly sent: number
  readonly perSecond: number
}

/** Resolves when it has begun; call the answer to end it. */
export async function startFlood(
  target: { readonly host: string; readonly port: number },
  perSecond: number,
): Promise<() => Promise<Flood>> {
  const self = fileURLToPath(import.meta.url)
  const child = fork(self, [target.host, String(target.port), String(perSecond)])
  await once(child, 'message')
  return async () => {
    child.send('stop')
    const [flood] = (await once(child, 'message')) as [Flood]
    return flood
  }
}

function run([host = '', port = '', perSecond = '0']: readonly string[]): void {
  const socket = createSocket('udp4')
  const startedAt = performance.now()
  // Magic, version and length as in a real one, so that it gets as far as it can without the cluster's key.
  const datagram = Buffer.alloc(120, 7)
  datagram.write('RG\u0001\0\u0007\0', 0, 'latin1')
  datagram.writeUInt16BE(datagram.length, 6)
  let sent = 0
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1_000) * Number(perSecond)
    while (sent < due) {
      datagram.writeUInt32BE(sent >>> 0, 60)
      socket.send(datagram, Number(port), host)
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
