import type { Address } from './address.ts'

/** Carries datagrams. They may be lost, come twice, and overtake each other. */
export interface Transport {
  /** Where it is bound, once started. */
  readonly address: Address
  start(onDatagram: OnDatagram): Promise<void>
  stop(): Promise<void>
  /** Never throws: what cannot be sent is lost. The bytes must not be changed afterwards. */
  send(bytes: Uint8Array, to: Address): void
  /** Datagrams that could not be sent, and errors of the socket. */
  readonly failures?: number
  /** What the system grants for datagrams that wait to be read. */
  readonly receiveBufferBytes?: number
}

export type OnDatagram = (bytes: Buffer, from: Address) => void
