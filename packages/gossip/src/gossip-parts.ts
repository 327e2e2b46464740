import type { HintOutbox } from './hints/hint-outbox.ts'
import type { Reports } from './hints/reports.ts'
import type { OwnInterest } from './interest/own-interest.ts'
import type { Candidates } from './membership/candidates.ts'
import type { Member } from './membership/member.ts'
import type { Members } from './membership/members.ts'
import type { GossipPreset } from './preset.ts'
import type { TokenClock } from './wire/token-clock.ts'
import type { Wire } from './wire/wire.ts'

/** State shared by the parts of one core. */
export interface GossipParts {
  readonly preset: GossipPreset
  readonly random: () => number
  readonly wire: Wire
  readonly tokens: TokenClock
  readonly members: Members
  readonly candidates: Candidates
  readonly interest: OwnInterest
  readonly outbox: HintOutbox<Member>
  readonly reports: Reports
  /** T: the heartbeat interval for each member. */
  intervalMs(): number
}
