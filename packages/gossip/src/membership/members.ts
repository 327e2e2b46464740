import type { Address } from '../transport/address.ts'
import type { SenderKey } from '../wire/frame.ts'
import type { Member } from './member.ts'

export const membersMax = 2_048
const departedMax = 256
/** How long stats show a departed node. */
const departedForMs = 3_600_000
/** How long datagrams that a node sent before it left may still arrive. After that, recorded traffic cannot
 * bring the node back either, because its tokens have expired. */
const leftForMs = 10_000
/** How many members get a heartbeat in one tick. */
const sliceSize = 20

export interface Departed {
  readonly member: Member
  readonly how: 'dead' | 'left'
  readonly at: number
}

/** The members by sender and by address, in heartbeat order, and the departed ones. */
export class Members {
  readonly #bySender = new Map<SenderKey, Member>()
  readonly #byAddress = new Map<Address, Member>()
  readonly #departed = new Map<SenderKey, Departed>()
  readonly #order: Member[] = []
  #next = 0
  #view: number

  constructor(ownSender: SenderKey) {
    this.#view = viewOf(ownSender)
  }

  get size(): number {
    return this.#order.length
  }

  get isFull(): boolean {
    return this.#order.length >= membersMax
  }

  /** A checksum over all members and this node. It is equal on nodes that see the same members. */
  get view(): number {
    return this.#view
  }

  all(): readonly Member[] {
    return this.#order
  }

  /** Members that departed within the last hour, oldest first. */
  departed(now: number): Iterable<Departed> {
    for (const [sender, { at }] of this.#departed) {
      if (now - at < departedForMs) break
      this.#departed.delete(sender)
    }
    return this.#departed.values()
  }

  get(sender: SenderKey): Member | undefined {
    return this.#bySender.get(sender)
  }

  at(address: Address): Member | undefined {
    return this.#byAddress.get(address)
  }

  add(member: Member): void {
    this.#departed.delete(member.sender)
    this.#bySender.set(member.sender, member)
    this.#byAddress.set(member.address, member)
    this.#order.push(member)
    this.#view ^= viewOf(member.sender)
  }

  move(member: Member, address: Address): void {
    if (this.#byAddress.get(member.address) === member) this.#byAddress.delete(member.address)
    member.address = address
    this.#byAddress.set(address, member)
  }

  remove(member: Member, how: 'dead' | 'left', now: number): void {
    if (this.#bySender.get(member.sender) !== member) throw new Error('not a member')
    this.#bySender.delete(member.sender)
    if (this.#byAddress.get(member.address) === member) this.#byAddress.delete(member.address)
    const index = this.#order.indexOf(member)
    this.#order.splice(index, 1)
    if (index < this.#next) this.#next -= 1
    this.#view ^= viewOf(member.sender)
    this.#departed.set(member.sender, { member, how, at: now })
    const [oldest] = this.#departed.keys()
    if (this.#departed.size > departedMax && oldest !== undefined) this.#departed.delete(oldest)
  }

  /** Whether this incarnation of a node left a moment ago. The record of a departure expires, because a
   * database restore may set a node's incarnation back, and peers must not refuse the node permanently. */
  hasLeft(sender: SenderKey, incarnation: number, now: number): boolean {
    const departed = this.#departed.get(sender)
    if (departed?.how !== 'left' || now - departed.at >= leftForMs) return false
    return incarnation <= departed.member.incarnation
  }

  get sliceCount(): number {
    return Math.ceil(this.size / sliceSize)
  }

  /** The next members to get a heartbeat. `sliceCount` calls cover all members. */
  nextSlice(): Member[] {
    const length = this.sliceCount === 0 ? 0 : Math.ceil(this.size / this.sliceCount)
    const slice = Array.from({ length }, (_, i) => this.#order[(this.#next + i) % this.size])
    this.#next = this.size === 0 ? 0 : (this.#next + length) % this.size
    return slice.filter((member) => member !== undefined)
  }
}

function viewOf(sender: SenderKey): number {
  return Buffer.from(sender, 'latin1').readUInt32BE(0) >>> 1
}
