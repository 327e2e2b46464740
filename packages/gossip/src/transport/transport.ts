import type { Address } from './address.ts'

/** Carries datagrams. They may be lost, duplicated or reordered. */
export interface Transport {
  /** The bound address, once started. */
  readonly address: Address
  start(onDatagram: OnDatagram): Promise<void>
  stop(): Promise<void>
  /** Never throws: what cannot be sent is lost. The caller must not change the bytes afterwards. */
  send(bytes: Uint8Array, to: Address): void
  /** Datagrams that could not be sent, and socket errors. */
  readonly failures?: number
  /** The receive buffer that the system granted. */
  readonly receiveBufferBytes?: number
}

export type OnDatagram = (bytes: Buffer, from: Address) => void
