// If two processes have the same node id, the one with the higher incarnation wins. Any node that knows the
// winner notifies the other process. The notice returns a token of the refused datagram, so the notice is
// valid only for that process and only for a short time.

import type { GossipParts } from '../gossip-parts.ts'
import type { GossipPorts } from '../ports.ts'
import type { Address } from '../transport/address.ts'
import type { Frame } from '../wire/frame.ts'
import { readMessages } from '../wire/message-reader.ts'
import type { Message, Stale } from '../wire/messages.ts'

const answerGapMs = 1_000
const noticeLifeMs = 2_000

export class NodeIdConflict {
  readonly #parts: GossipParts
  readonly #ports: GossipPorts
  #answeredAt = Number.NEGATIVE_INFINITY
  /** The latest known incarnation of our id. */
  #latest: number

  constructor(parts: GossipParts, ports: GossipPorts) {
    this.#parts = parts
    this.#ports = ports
    this.#latest = parts.wire.origin.incarnation
  }

  /** Notifies the sender of the frame that a later incarnation is known. */
  answer({ body }: Frame, incarnation: number, from: Address, now: number): void {
    if (now - this.#answeredAt < answerGapMs) return
    const messages = readMessages(body)
    const echo = typeof messages === 'string' ? undefined : tokenIn(messages)
    if (echo === undefined) return
    this.#answeredAt = now
    this.#parts.wire.send([{ type: 'stale', incarnation, echo }], from)
  }

  /** Reports each later incarnation to the caller once. */
  note({ incarnation, echo }: Stale, now: number): void {
    if (incarnation <= this.#latest) return
    const issuedAt = this.#parts.tokens.issuedAt(echo, now)
    if (issuedAt === undefined || now - issuedAt > noticeLifeMs) return
    this.#latest = incarnation
    this.#ports.onSuperseded?.(incarnation)
  }

  noteAll(messages: readonly Message[], now: number): void {
    for (const message of messages) if (message.type === 'stale') this.note(message, now)
  }

  /** Another process seems to use our id, but its datagram may be a replay. An earlier incarnation gets a
   * notice. A later incarnation gets a hello, which the other process answers if it exists. */
  heardDuplicate(frame: Frame, from: Address, now: number): void {
    const own = this.#parts.wire.origin.incarnation
    if (frame.incarnation < own) return this.answer(frame, own, from, now)
    const messages = readMessages(frame.body)
    if (typeof messages !== 'string') this.noteAll(messages, now)
    if (frame.incarnation > this.#latest) this.#parts.candidates.heardStranger(from, now)
  }
}

function tokenIn(messages: readonly Message[]): number | undefined {
  for (const message of messages) {
    if (message.type === 'hello' || message.type === 'heartbeat') return message.token
  }
  return undefined
}
