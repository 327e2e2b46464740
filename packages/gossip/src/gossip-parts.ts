import type { Candidates } from './candidates.ts'
import type { HintOutbox } from './hint-outbox.ts'
import type { Member } from './member.ts'
import type { Members } from './members.ts'
import type { OwnInterest } from './own-interest.ts'
import type { GossipPreset } from './preset.ts'
import type { TokenClock } from './token-clock.ts'
import type { Wire } from './wire.ts'

/** What the parts of one core share. */
export interface GossipParts {
  readonly preset: GossipPreset
  readonly random: () => number
  readonly wire: Wire
  readonly tokens: TokenClock
  readonly members: Members
  readonly candidates: Candidates
  readonly interest: OwnInterest
  readonly outbox: HintOutbox<Member>
  /** T: how often each member gets a heartbeat. */
  intervalMs(): number
}
