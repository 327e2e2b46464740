import type { Member } from '../membership/member.ts'
import type { GossipCoreOptions, GossipPorts } from '../ports.ts'
import type { Address } from '../transport/address.ts'
import { clusterNumber, type FrameOrigin, type SenderKey, sealFrame, senderKey } from './frame.ts'
import { type Message, packMessages } from './messages.ts'

/** Packs messages into signed, numbered datagrams. */
export class Wire {
  readonly origin: FrameOrigin
  readonly #signer: GossipCoreOptions['signer']
  readonly #send: GossipPorts['send']
  #sequence = 0
  datagramsSent = 0
  hintDatagramsSent = 0
  bytesSent = 0

  constructor({ clusterId, nodeId, incarnation, signer }: GossipCoreOptions, ports: GossipPorts) {
    const cluster = clusterNumber(clusterId)
    const sender = senderKey(clusterId, nodeId)
    this.origin = { cluster, sender, incarnation: Number(incarnation) }
    this.#signer = signer
    this.#send = (bytes, to) => ports.send(bytes, to)
  }

  get sender(): SenderKey {
    return this.origin.sender
  }

  send(messages: readonly Message[], to: Address): void {
    this.#sendBytes(this.#seal(messages), to)
  }

  /** Sends the same bytes to all members. */
  sendTo(members: readonly Member[], messages: readonly Message[]): void {
    if (members.length === 0) return
    const bytes = this.#seal(messages)
    const [first] = messages
    const isForHints = first?.type === 'hints' || first?.type === 'settled'
    if (isForHints) this.hintDatagramsSent += members.length
    for (const member of members) {
      member.datagramsSent += 1
      this.#sendBytes(bytes, member.address)
    }
  }

  #seal(messages: readonly Message[]): Buffer {
    this.#sequence += 1
    return sealFrame(this.origin, this.#sequence, packMessages(messages), this.#signer)
  }

  #sendBytes(bytes: Buffer, to: Address): void {
    this.datagramsSent += 1
    this.bytesSent += bytes.length
    this.#send(bytes, to)
  }
}
