// Datagrams over one UDP socket. Only createSocket with a callback, bind and close of dgram-as-promised are
// used: its recv() and iterator lose datagrams that arrive between two calls, a failed socket keeps its error
// for the next call, and its send() creates a promise per datagram that no caller awaits.
import * as dgram from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import { DgramAsPromised, type SocketAsPromised } from 'dgram-as-promised'
import {
  type Address,
  formatAddress,
  type HostAndPort,
  isNumeric,
  parseAddress,
} from './address.ts'
import type { OnDatagram, Transport } from './transport.ts'

/** Holds the datagrams that arrive while the node stalls for a second. */
const receiveBufferBytes = 4 * 2 ** 20
const sendBufferBytes = 2 ** 20
/** If more than this is queued, the network is saturated, and further hints would arrive too late. */
const queuedBytesMax = 256 * 2 ** 10
const parsedMax = 8_192

/** `node:dgram`, or a replacement in a test. */
type SocketMaker = typeof dgram

export class UdpTransport implements Transport {
  readonly #bind: HostAndPort
  readonly #sockets: SocketMaker
  readonly #parsed = new Map<Address, HostAndPort | undefined>()
  #socket: SocketAsPromised | undefined
  #isIPv6 = false
  #address: Address = ''
  failures = 0

  constructor(bind: HostAndPort, sockets: SocketMaker = dgram) {
    this.#bind = bind
    this.#sockets = sockets
  }

  get address(): Address {
    return this.#address
  }

  get receiveBufferBytes(): number {
    return this.#socket?.getRecvBufferSize() ?? 0
  }

  async start(onDatagram: OnDatagram): Promise<void> {
    if (this.#socket !== undefined) return
    const host = await numericHost(this.#bind.host)
    this.#isIPv6 = isIPv6(host)
    const socket = DgramAsPromised.createSocket(
      { type: this.#isIPv6 ? 'udp6' : 'udp4', lookup: asItIs, dgram: this.#sockets },
      (bytes, { address, port }) => onDatagram(bytes, formatAddress({ host: address, port })),
    )
    socket.socket.on('error', this.#countFailure)
    // Exclusive: under node:cluster this process does not share the port with others.
    const where = { address: host, port: this.#bind.port, exclusive: true }
    const bound = await socket.bind(where).catch(async (error: unknown) => {
      await socket.close()
      throw error
    })
    this.#socket = socket
    this.#address = formatAddress({ host: bound.address, port: bound.port })
    setBuffer(receiveBufferBytes, (size) => socket.setRecvBufferSize(size))
    setBuffer(sendBufferBytes, (size) => socket.setSendBufferSize(size))
  }

  async stop(): Promise<void> {
    const socket = this.#socket
    this.#socket = undefined
    await socket?.close()
  }

  send(bytes: Uint8Array, to: Address): void {
    const socket = this.#socket?.socket
    const target = this.#target(to)
    if (socket === undefined) return
    if (target === undefined || socket.getSendQueueSize() > queuedBytesMax) {
      this.failures += 1
      return
    }
    try {
      socket.send(bytes, target.port, target.host, this.#countFailure)
    } catch {
      this.failures += 1
    }
  }

  readonly #countFailure = (error: Error | null): void => {
    if (error !== null) this.failures += 1
  }

  /** Undefined if this socket cannot send there. */
  #target(to: Address): HostAndPort | undefined {
    if (this.#parsed.has(to)) return this.#parsed.get(to)
    const parsed = parseAddress(to)
    const target = parsed && isNumeric(parsed.host) ? this.#reachable(parsed) : undefined
    if (this.#parsed.size >= parsedMax) this.#parsed.clear()
    this.#parsed.set(to, target)
    return target
  }

  #reachable({ host, port }: HostAndPort): HostAndPort | undefined {
    if (isIPv6(host) === this.#isIPv6) return { host, port }
    return this.#isIPv6 ? { host: `::ffff:${host}`, port } : undefined
  }
}

/** Addresses are numeric. Without this function, Node.js passes each one to the resolver. */
function asItIs(
  host: string,
  family: unknown,
  callback: (error: null, address: string, family: number) => void,
): void {
  callback(null, host, family === 6 ? 6 : 4)
}

async function numericHost(host: string): Promise<string> {
  return isNumeric(host) ? host : (await lookup(host)).address
}

/** Linux clamps the size; other systems refuse a size that is too large. */
function setBuffer(size: number, set: (size: number) => void): void {
  for (let wanted = size; wanted >= 64 * 2 ** 10; wanted /= 2) {
    try {
      set(wanted)
      return
    } catch {
      // Too large for this system.
    }
  }
}
