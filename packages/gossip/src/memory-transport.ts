import type { Address } from './address.ts'
import type { OnDatagram, Transport } from './transport.ts'

/** A network in memory, for tests. Datagrams arrive in a later turn of the event loop. */
export class MemoryNetwork {
  readonly #sockets = new Map<Address, OnDatagram>()
  /** Decides which datagrams arrive. */
  delivers: (bytes: Uint8Array, from: Address, to: Address) => boolean = () => true

  transport(address: Address): Transport {
    const sockets = this.#sockets
    return {
      address,
      start: async (onDatagram) => {
        if (sockets.has(address)) throw new Error(`${address} is in use`)
        sockets.set(address, onDatagram)
      },
      stop: async () => {
        sockets.delete(address)
      },
      send: (bytes, to) => {
        if (sockets.has(address) && this.delivers(bytes, address, to))
          this.#deliver(bytes, address, to)
      },
    }
  }

  #deliver(bytes: Uint8Array, from: Address, to: Address): void {
    setImmediate(() => this.#sockets.get(to)?.(Buffer.from(bytes), from))
  }
}
