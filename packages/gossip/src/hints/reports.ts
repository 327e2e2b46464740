// Reports to peers that hints are settled: waiters of this node take the messages, so the peer need not send
// the hint to other nodes. A peer gets reports only of hints that it asked about. A report is sent once: if
// it is lost, other nodes get a hint that they do not need. Reports wait a moment for each other, and travel
// with any datagram that goes to the same peer meanwhile.
import type { Member } from '../membership/member.ts'
import type { Settled } from '../wire/messages.ts'
import { writeRecipients } from './recipients.ts'

/** The shortest time between two rounds of datagrams that only carry reports. */
const gapMs = 2
/** Further reports in the same moment are dropped. */
export const reportsMax = 64
/** An upper bound for the size of one report, and for the rest of the message. */
const reportBytes = 12
const messageBytes = 16

export class Reports {
  readonly #waiting = new Map<Member, number[]>()
  #sendAt = Number.POSITIVE_INFINITY
  #sentAt = Number.NEGATIVE_INFINITY

  get nextAt(): number {
    return this.#sendAt
  }

  add(member: Member, batchNumber: number, askNumber: number, now: number): void {
    const waiting = this.#waiting.get(member) ?? []
    if (waiting.length >= 2 * reportsMax) return
    waiting.push(batchNumber, askNumber)
    this.#waiting.set(member, waiting)
    this.#sendAt = Math.min(this.#sendAt, Math.max(now, this.#sentAt + gapMs))
  }

  /** Takes the reports for one member, if they fit into this room. */
  takeFor(member: Member, roomBytes = Number.POSITIVE_INFINITY): Settled[] {
    const settled = this.#waiting.get(member)
    if (settled === undefined) return []
    if (messageBytes + (settled.length / 2) * reportBytes > roomBytes) return []
    this.#waiting.delete(member)
    if (this.#waiting.size === 0) this.#sendAt = Number.POSITIVE_INFINITY
    return [{ type: 'settled', to: writeRecipients([member.sender]), settled }]
  }

  /** Takes all reports that are due. */
  takeDue(now: number): [Member, Settled[]][] {
    if (this.#sendAt > now) return []
    this.#sentAt = now
    return Array.from(this.#waiting.keys(), (member) => [member, this.takeFor(member)])
  }
}
