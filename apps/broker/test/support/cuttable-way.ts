import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A way to PostgreSQL that can be cut, or fall silent. */
export async function cuttableWay(t: Test, target: string) {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((near) => {
    if (isCut) return near.destroy()
    const far = connect({ host: hostname, port: Number(port) })
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
    cut() {
      isCut = true
      for (const socket of sockets) socket.destroy()
    },
    /** What stands stays open, and nothing is read from it or answered. */
    hush() {
      for (const socket of sockets) socket.unpipe().pause()
    },
    mend() {
      isCut = false
    },
  }
}
