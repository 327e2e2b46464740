// The TCP balancer of a development cluster: sends each connection to the node with the fewest connections
// and skips nodes that do not answer. It knows nothing about HTTP.
import { connect, createServer, type Server, type Socket } from 'node:net'

export interface Backend {
  readonly host: string
  readonly port: number
}

export interface Balancer {
  readonly port: number
  /** Stops accepting connections. Open connections stay. */
  close(): void
  /** Resolves when every connection is closed. */
  stop(): Promise<void>
}

export interface BalancerOptions {
  readonly host: string
  readonly port: number
  readonly backends: readonly Backend[]
  /** Whether a backend accepts new connections. False while it drains and after it died. */
  readonly isReady: (backend: Backend) => boolean
}

const connectMsMax = 1_000

export async function startBalancer(options: BalancerOptions): Promise<Balancer> {
  const connections = new Map<Backend, number>(options.backends.map((one) => [one, 0]))
  const open = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    track(client)
    forward(client, inOrder())
  })
  await listen(server, options)

  /** Ready backends first, then the others, which may have become ready meanwhile; both sorted by load. */
  function inOrder(): Backend[] {
    const { backends, isReady } = options
    const byLoad = [...backends].sort((a, b) => loadOf(a) - loadOf(b))
    return [...byLoad.filter(isReady), ...byLoad.filter((one) => !isReady(one))]
  }

  function loadOf(backend: Backend): number {
    return connections.get(backend) ?? 0
  }

  function forward(client: Socket, [backend, ...others]: Backend[]): void {
    if (backend === undefined || client.destroyed) {
      client.destroy()
      return
    }
    connections.set(backend, loadOf(backend) + 1)
    const server = connect({ ...backend, allowHalfOpen: true, noDelay: true })
    const timer = setTimeout(() => server.destroy(), connectMsMax)
    let connected = false
    track(server)
    server.once('connect', () => {
      connected = true
      clearTimeout(timer)
      client.pipe(server)
      server.pipe(client)
    })
    const leave = (): void => void server.destroy()
    client.once('close', leave)
    server.once('close', () => {
      clearTimeout(timer)
      client.off('close', leave)
      connections.set(backend, loadOf(backend) - 1)
      // Nothing was read from the client yet, so the next backend can take the connection.
      if (!connected) forward(client, others)
      else if (!client.writableFinished) client.destroySoon()
    })
  }

  function track(socket: Socket): void {
    open.add(socket)
    // A reset needs no handling of its own: `close` follows.
    socket.on('error', () => {})
    socket.once('close', () => open.delete(socket))
  }

  let closed: Promise<void> | undefined
  function close(): Promise<void> {
    closed ??= new Promise((resolve) => server.close(() => resolve()))
    return closed
  }

  return {
    port: (server.address() as { port: number }).port,
    close: () => void close(),
    async stop() {
      for (const socket of open) socket.destroy()
      await close()
    },
  }
}

function listen(server: Server, { host, port }: BalancerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, resolve)
  })
}
