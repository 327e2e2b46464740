// A TCP port that forwards to another one, with a fault on demand:
//
//   forward       normal operation
//   drop          nothing passes and nothing is reset, as behind a dropping firewall; the data arrives after
//                 the heal
//   reject        old and new connections are reset
//   lose answers  requests pass; some responses are dropped and their connection is reset, so that the
//                 client cannot know the outcome
//   delay         like `forward`, but late
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export type TcpMode =
  | { readonly kind: 'forward' | 'drop' | 'reject' }
  | { readonly kind: 'lose answers'; readonly probability: number; readonly random: () => number }
  | { readonly kind: 'delay'; readonly ms: number }

export interface TcpRelay {
  readonly port: number
  set(mode: TcpMode): void
  /** Resets all current connections, or this share of them. Returns how many it reset. */
  cut(part?: { readonly share: number; readonly random: () => number }): number
  stop(): Promise<void>
}

export interface TcpRelayOptions {
  /** Returns the target port; called for every new connection. */
  readonly to: () => number
  readonly port?: number
}

const host = '127.0.0.1'

export async function startTcpRelay({ to, port = 0 }: TcpRelayOptions): Promise<TcpRelay> {
  let mode: TcpMode = { kind: 'forward' }
  const links = new Set<Link>()
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    if (mode.kind === 'reject') {
      client.on('error', () => {})
      client.resetAndDestroy()
      return
    }
    const link = new Link(client, to(), () => mode)
    links.add(link)
    link.onClosed = () => links.delete(link)
  })
  await listen(server, port)
  return {
    port: (server.address() as AddressInfo).port,
    set(next) {
      mode = next
      for (const link of links) link.modeChanged()
    },
    cut({ share, random } = { share: 1, random: () => 0 }) {
      const chosen = [...links].filter(() => random() < share)
      for (const link of chosen) link.reset()
      return chosen.length
    },
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const link of links) link.reset()
      await closed
    },
  }
}

/** A client's connection and the one to the target. */
class Link {
  onClosed: () => void = () => {}
  readonly #client: Socket
  readonly #server: Socket
  readonly #mode: () => TcpMode
  #open = 2

  constructor(client: Socket, port: number, mode: () => TcpMode) {
    this.#client = client
    this.#server = connect({ host, port, allowHalfOpen: true, noDelay: true })
    this.#mode = mode
    this.#carry(this.#client, this.#server, false)
    this.#carry(this.#server, this.#client, true)
    this.modeChanged()
  }

  modeChanged(): void {
    const { kind } = this.#mode()
    if (kind === 'reject') this.reset()
    for (const socket of [this.#client, this.#server]) {
      if (kind === 'drop') socket.pause()
      else socket.resume()
    }
  }

  reset(): void {
    this.#client.resetAndDestroy()
    this.#server.resetAndDestroy()
  }

  #carry(from: Socket, into: Socket, isAnswer: boolean): void {
    from.on('data', (bytes) => {
      const mode = this.#mode()
      if (isAnswer && mode.kind === 'lose answers' && mode.random() < mode.probability) {
        this.reset()
      } else if (mode.kind === 'delay') {
        setTimeout(() => into.write(bytes), mode.ms)
      } else if (!into.write(bytes)) {
        from.pause()
      }
    })
    into.on('drain', () => {
      if (this.#mode().kind !== 'drop') from.resume()
    })
    // With a delay, the end of the stream must not overtake its data.
    from.on('end', () => {
      const mode = this.#mode()
      setTimeout(() => into.end(), mode.kind === 'delay' ? mode.ms : 0)
    })
    from.on('error', () => into.resetAndDestroy())
    from.on('close', () => {
      if (!into.writableEnded) into.destroySoon()
      this.#open -= 1
      if (this.#open === 0) this.onClosed()
    })
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, resolve)
  })
}
