import type { Address } from './address.ts'
import type { OnDatagram, Transport } from './transport.ts'

/** An in-memory network for tests. Datagrams arrive in a later turn of the event loop. */
export class MemoryNetwork {
  readonly #sockets = new Map<Address, MemoryTransport>()
  /** Decides which datagrams arrive. */
  delivers: (bytes: Uint8Array, from: Address, to: Address) => boolean = () => true

  transport(address: Address): Transport {
    return new MemoryTransport(address, this.#sockets, (bytes, from, to) =>
      this.delivers(bytes, from, to),
    )
  }
}

class MemoryTransport implements Transport {
  readonly address: Address
  readonly #sockets: Map<Address, MemoryTransport>
  readonly #delivers: MemoryNetwork['delivers']
  #onDatagram: OnDatagram | undefined

  constructor(
    address: Address,
    sockets: Map<Address, MemoryTransport>,
    delivers: MemoryNetwork['delivers'],
  ) {
    this.address = address
    this.#sockets = sockets
    this.#delivers = delivers
  }

  async start(onDatagram: OnDatagram): Promise<void> {
    const there = this.#sockets.get(this.address)
    if (there === this) return
    if (there !== undefined) throw new Error(`${this.address} is in use`)
    this.#onDatagram = onDatagram
    this.#sockets.set(this.address, this)
  }

  async stop(): Promise<void> {
    if (this.#sockets.get(this.address) === this) this.#sockets.delete(this.address)
    this.#onDatagram = undefined
  }

  send(bytes: Uint8Array, to: Address): void {
    if (this.#onDatagram === undefined || !this.#delivers(bytes, this.address, to)) return
    const copy = Buffer.from(bytes)
    setImmediate(() => this.#sockets.get(to)?.receive(copy, this.address))
  }

  receive(bytes: Buffer, from: Address): void {
    this.#onDatagram?.(bytes, from)
  }
}
