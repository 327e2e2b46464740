import type { Address } from '../transport/address.ts'
import type { Member, MemberState } from './member.ts'

export type PeerState = MemberState | 'dead' | 'left'

/** A peer as shown in stats. Times are ages in milliseconds. */
export interface PeerView {
  readonly nodeId: string
  readonly address: Address
  readonly incarnation: number
  readonly state: PeerState
  readonly inStateMs: number
  readonly heardAgoMs: number
  /** False if the peer reports that it does not hear us. */
  readonly hearsUs: boolean
  readonly rttMs: number | undefined
  /** How many pairs of scope and consumer group the peer waits for. `all` and `unknown`: the peer gets every hint. */
  readonly interest: number | 'all' | 'unknown'
  readonly hintsSent: number
  readonly hintsReceived: number
  /** How many batches the peer sent that never arrived. */
  readonly hintBatchesLost: number
  readonly datagramsSent: number
  readonly datagramsReceived: number
  readonly replaysDropped: number
}

export function viewOf(member: Member, now: number, hearsWithinMs: number): PeerView {
  return {
    nodeId: member.nodeId,
    address: member.address,
    incarnation: member.incarnation,
    state: member.state,
    inStateMs: now - member.since,
    heardAgoMs: now - member.heardAt,
    hearsUs: member.sinceHeardMs < hearsWithinMs,
    rttMs: member.rttMs,
    interest: member.interest.size,
    hintsSent: member.hintsSent,
    hintsReceived: member.hintsReceived,
    hintBatchesLost: member.inbox.lost,
    datagramsSent: member.datagramsSent,
    datagramsReceived: member.datagramsReceived,
    replaysDropped: member.replays,
  }
}
