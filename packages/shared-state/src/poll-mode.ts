// Whether wakes can be trusted.
//
//   healthy      LISTEN is up, every peer is heard, grants are taken, queries succeed. Hints find the
//                waiters; fallback checks are rare.
//   aggressive   something that carries hints is broken or was a moment ago. Every group with waiters is
//                checked on its ladder.
//
// healthy → aggressive: a fault. Two faults stand until they are cleared (listener_lost, peer_silent);
// the others happen and are over (fetch_error, grant_untaken, sidecar_lost, outcome_unknown).
//
// aggressive → healthy: no fault stands, the last one is AGGRESSIVE_POLL_DURATION_MS ago, and the last
// AGGRESSIVE_EXIT_THRESHOLD fallback checks succeeded and found nothing that no hint had told of: either there was
// no work, or the pop for it came back empty (another node was faster). A node so busy that no group is ever due
// checks them all by its pops. With no waiters there is nothing to check and nothing to miss: the time alone decides.
//
// A wake, by whatever source, is no fault: a node whose hints work is busy, and would never leave.
import type { SharedStateSettings } from './settings.ts'

export type StandingFault = 'listener_lost' | 'peer_silent'
/** `sidecar_lost`, `outcome_unknown`: what a worker had in flight when it died, or when its connection was lost, may
 * commit after everybody looked. */
export type MomentaryFault = 'fetch_error' | 'grant_untaken' | 'sidecar_lost' | 'outcome_unknown'
export type Fault = StandingFault | MomentaryFault

export interface PollMode {
  readonly mode: 'healthy' | 'aggressive'
  readonly since: number
  /** The faults met since it became aggressive. */
  readonly why: readonly Fault[]
  readonly standing: readonly StandingFault[]
  readonly lastFaultAt: number
  readonly quietChecks: number
}

type Exit = Pick<SharedStateSettings, 'aggressivePollDurationMs' | 'aggressiveExitThreshold'>

export function startHealthy(now: number): PollMode {
  return { mode: 'healthy', since: now, why: [], standing: [], lastFaultAt: now, quietChecks: 0 }
}

export function afterFault(mode: PollMode, fault: Fault, now: number): PollMode {
  return {
    mode: 'aggressive',
    since: mode.mode === 'aggressive' ? mode.since : now,
    why: including(mode.why, fault),
    standing: isStanding(fault) ? including(mode.standing, fault) : mode.standing,
    lastFaultAt: now,
    quietChecks: 0,
  }
}

/** The time to leave counts from here: what was lost while the fault stood is still to be found. */
export function afterFaultCleared(mode: PollMode, fault: StandingFault, now: number): PollMode {
  if (!mode.standing.includes(fault)) return mode
  const standing = mode.standing.filter((one) => one !== fault)
  return { ...mode, standing, lastFaultAt: now, quietChecks: 0 }
}

export function afterCheck(
  mode: PollMode,
  found: 'nothing' | 'unannounced',
  now: number,
  exit: Exit,
): PollMode {
  if (mode.mode === 'healthy') return mode
  if (found === 'unannounced') return { ...mode, quietChecks: 0 }
  const quietChecks = mode.quietChecks + 1
  const isOver = quietChecks >= exit.aggressiveExitThreshold && now >= leavesAt(mode, exit)
  return isOver ? startHealthy(now) : { ...mode, quietChecks }
}

export function whileNobodyWaits(mode: PollMode, now: number, exit: Exit): PollMode {
  return mode.mode === 'aggressive' && now >= leavesAt(mode, exit) ? startHealthy(now) : mode
}

/** The earliest time at which aggressive mode can end. */
export function leavesAt(mode: PollMode, exit: Pick<Exit, 'aggressivePollDurationMs'>): number {
  if (mode.standing.length > 0) return Number.POSITIVE_INFINITY
  return mode.lastFaultAt + exit.aggressivePollDurationMs
}

function isStanding(fault: Fault): fault is StandingFault {
  return fault === 'listener_lost' || fault === 'peer_silent'
}

function including<F>(faults: readonly F[], fault: F): readonly F[] {
  return faults.includes(fault) ? faults : [...faults, fault]
}
