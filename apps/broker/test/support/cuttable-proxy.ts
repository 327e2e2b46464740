import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A proxy to PostgreSQL whose connections can be cut or silenced, and that counts requests. */
export async function cuttableProxy(t: Test, target: string) {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let isCut = false
  let requests = 0
  const server = createServer((near) => {
    if (isCut) return near.destroy()
    const far = connect({ host: hostname, port: Number(port) })
    near.on('data', () => {
      requests += 1
    })
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('close', () => to.destroy())
      from.pipe(to)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as { port: number }).port)
  return {
    url: url.href,
    /** How often something was sent to PostgreSQL: once for each query, or a little more. */
    requests: () => requests,
    cut() {
      isCut = true
      for (const socket of sockets) socket.destroy()
    },
    /** Keeps connections open, but no longer reads from them or writes to them. */
    silence() {
      for (const socket of sockets) socket.unpipe().pause()
    },
    restore() {
      isCut = false
    },
  }
}
