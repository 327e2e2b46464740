import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

export interface LossyProxy {
  /** The URL of the database through the proxy. */
  readonly url: string
  /** Drops all traffic of the open connections, like a firewall that lost its state. New connections work. */
  loseFlows(): void
}

export async function lossyProxy(t: Test, databaseUrl: string): Promise<LossyProxy> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const lost = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect({ port: Number(target.port), host: target.hostname })
    const pass = (from: Socket, to: Socket): void => {
      sockets.add(from)
      from.on('error', () => {})
      from.on('data', (bytes) => lost.has(from) || to.write(bytes))
      from.on('close', () => lost.has(from) || to.destroy())
    }
    pass(client, upstream)
    pass(upstream, client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const url = new URL(databaseUrl)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as { port: number }).port)
  return {
    url: url.href,
    loseFlows() {
      for (const socket of sockets) lost.add(socket)
    },
  }
}
