// Two processes with one id: the one with the higher incarnation is the node, and whoever knows it tells the
// other so. It sends back a token of what it refused, so a notice counts for nobody else and not for long.

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
  /** The latest life of our id that there is to our knowledge. */
  #latest: number

  constructor(parts: GossipParts, ports: GossipPorts) {
    this.#parts = parts
    this.#ports = ports
    this.#latest = parts.wire.origin.incarnation
  }

  /** Tells who sent the frame that a later life of it is known. */
  answer({ body }: Frame, incarnation: number, from: Address, now: number): void {
    if (now - this.#answeredAt < answerGapMs) return
    const messages = readMessages(body)
    const echo = typeof messages === 'string' ? undefined : tokenIn(messages)
    if (echo === undefined) return
    this.#answeredAt = now
    this.#parts.wire.send([{ type: 'stale', incarnation, echo }], from)
  }

  /** Tells the caller of each later life once. */
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

  /** Somebody uses our id. What says so may be recorded, so the one is told and the other is asked: it tells
   * us if it is there. */
  heardNamesake(frame: Frame, from: Address, now: number): void {
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
