import type { Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import type { FastifyInstance } from 'fastify'

/** A request that was sent when the server stopped listening has arrived after this time. */
const unusedMs = 500

/**
 * Closes connections on which no request has come when the server stops. It would wait for them, and clients open
 * some in advance: the `fetch` of Node 20 does when a connection ends.
 */
export function closeUnusedConnections(app: FastifyInstance): void {
  const { server } = app
  const unused = new Set<Socket>()
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  })
  server.on('request', ({ socket }) => unused.delete(socket))
  app.addHook('preClose', (done) => {
    setTimeout(() => {
      for (const socket of unused) socket.destroy()
    }, unusedMs).unref()
    done()
  })
}
