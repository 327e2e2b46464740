// A node that proved its presence, as this node sees it. Verdicts of other nodes do not count; another node
// can only vouch that it has heard the member. T is the heartbeat interval.
//
//   (joined) → alive           it returned a fresh token of ours
//   alive → suspect            silent for 3 T; or it returned no token for 10 T: it does not hear us
//   suspect → alive            it returned a fresh token
//   suspect → unreachable      silent for 10 T, but a peer has heard it recently
//   unreachable → suspect      heard again
//   suspect, unreachable → (dead)   silent for 10 T, and no peer vouches for it
//   any → (left)               it sent a leave message
//
// Hints go to members in every state: a wrong verdict costs time, never a message.

import type { Recipient } from '../hints/hint-batch.ts'
import { HintInbox } from '../hints/hint-inbox.ts'
import { PeerInterest } from '../interest/peer-interest.ts'
import type { GossipPreset } from '../preset.ts'
import type { Address } from '../transport/address.ts'
import type { SenderKey } from '../wire/frame.ts'
import { ReplayWindow } from '../wire/replay-window.ts'

export type MemberState = 'alive' | 'suspect' | 'unreachable'

export interface MemberOptions {
  readonly nodeId: string
  readonly sender: SenderKey
  readonly incarnation: number
  readonly address: Address
  /** The sequence number of the datagram with the token. */
  readonly sequence: number
  /** When we sent the token that came back. */
  readonly echoedAt: number
}

export class Member implements Recipient {
  readonly nodeId: string
  readonly sender: SenderKey
  readonly incarnation: number
  address: Address
  state: MemberState = 'alive'
  since: number
  /** When its last heartbeat for us arrived. */
  heardAt: number
  /** When we sent the last token that came back. */
  echoedAt: number
  rttMs: number | undefined
  /** The last token of ours that it returned. */
  echo = 0
  /** Its last token, and when it arrived. */
  token = 0
  tokenAt = 0
  intervalMs = 0
  /** The time since the member had heard us, as its last heartbeat reported it. */
  sinceHeardMs = 0
  view = 0
  readonly window = new ReplayWindow()
  readonly interest = new PeerInterest()
  /** The version of our interest that the member holds, and when we last sent our interest. */
  interestHeld = 0
  interestSentAt = Number.NEGATIVE_INFINITY
  readonly inbox = new HintInbox()
  hintsSent = 0
  batchesSent = 0
  batchesUnconfirmed = 0
  chosenNumber = 0
  passedOverUntil = Number.NEGATIVE_INFINITY
  readonly countedFrom: number
  hintsReceived = 0
  askedAt = Number.NEGATIVE_INFINITY
  vouchedAt = Number.NEGATIVE_INFINITY
  answeredAt = Number.NEGATIVE_INFINITY
  datagramsReceived = 0
  datagramsSent = 0
  replays = 0

  constructor(options: MemberOptions, countedFrom: number, now: number) {
    this.nodeId = options.nodeId
    this.sender = options.sender
    this.incarnation = options.incarnation
    this.address = options.address
    this.countedFrom = countedFrom
    this.since = now
    this.heardAt = now
    this.echoedAt = options.echoedAt
    this.window.startAfter(options.sequence)
  }
}

export type Verdict = MemberState | 'dead'

/** The state of a member by elapsed time. Only a returned token makes a member alive again. */
export function judge(member: Member, now: number, preset: GossipPreset, ownMs: number): Verdict {
  const intervalMs = Math.max(ownMs, member.intervalMs)
  const silentMs = now - member.heardAt
  const isSilent = silentMs >= preset.suspectAfter * intervalMs
  const isUnheard = now - member.echoedAt >= preset.deadAfter * intervalMs
  if (silentMs >= preset.deadAfter * intervalMs) {
    const isVouchedFor = now - member.vouchedAt < vouchLasts * intervalMs
    return isVouchedFor ? 'unreachable' : 'dead'
  }
  if (member.state === 'alive') return isSilent || isUnheard ? 'suspect' : 'alive'
  return member.state === 'unreachable' && isSilent ? 'unreachable' : 'suspect'
}

/** When a member in a state other than alive is next judged, or peers are next asked about it. */
export function nextCheckAt(member: Member, preset: GossipPreset, ownMs: number): number {
  const intervalMs = Math.max(ownMs, member.intervalMs)
  const deadAt = Math.max(
    member.heardAt + preset.deadAfter * intervalMs,
    member.state === 'unreachable' ? member.vouchedAt + vouchLasts * intervalMs : 0,
  )
  return Math.min(deadAt, askAt(member, preset, intervalMs))
}

export function isTimeToAsk(member: Member, now: number, preset: GossipPreset, ownMs: number) {
  return now >= askAt(member, preset, Math.max(ownMs, member.intervalMs))
}

/** How long it counts that a peer vouched for a member, in heartbeat intervals. */
const vouchLasts = 5
const askAgainAfter = 2

function askAt(member: Member, preset: GossipPreset, intervalMs: number): number {
  return Math.max(
    member.heardAt + preset.askAfter * intervalMs,
    member.askedAt + askAgainAfter * intervalMs,
  )
}
