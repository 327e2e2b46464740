// Whether wake-ups can be trusted.
//
//   healthy      LISTEN is up, every peer is heard, grants are taken, queries succeed. Hints reach the
//                waiters; fallback polls are rare.
//   aggressive   a fault may lose hints, or ended only recently. Every group with waiters is polled at its
//                backoff interval.
//
// healthy → aggressive: a fault. Two faults last until they are cleared (listener_lost, peer_silent); the
// others are momentary (fetch_error, grant_untaken, sidecar_lost, outcome_unknown).
//
// aggressive → healthy: no lasting fault remains, the last fault was at least AGGRESSIVE_POLL_DURATION_MS
// ago, and the last AGGRESSIVE_EXIT_THRESHOLD fallback polls succeeded and found nothing unannounced: either
// there was no work, or the pop for that work was empty because another node was faster. If a node is so busy
// that no group is ever due, its pops count as polls. Without waiters there is nothing to poll and nothing to
// miss: the time alone decides.
//
// A wake-up from any source is not a fault: otherwise a busy node with working hints would never leave
// aggressive mode.
import type { SharedStateSettings } from './settings.ts'

export type StandingFault = 'listener_lost' | 'peer_silent'
/**
 * `sidecar_lost`, `outcome_unknown`: a write that was in flight when the worker died or its connection broke
 * may commit after every waiter has polled.
 */
export type MomentaryFault = 'fetch_error' | 'grant_untaken' | 'sidecar_lost' | 'outcome_unknown'
export type Fault = StandingFault | MomentaryFault

export interface PollMode {
  readonly mode: 'healthy' | 'aggressive'
  readonly since: number
  /** The faults since the node became aggressive. */
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

/** The duration starts again, because messages missed during the fault are still to be found. */
export function afterFaultCleared(mode: PollMode, fault: StandingFault, now: number): PollMode {
  if (!mode.standing.includes(fault)) return mode
  const standing = mode.standing.filter((one) => one !== fault)
  return { ...mode, standing, lastFaultAt: now, quietChecks: 0 }
}

export function afterPoll(
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

export function withoutWaiters(mode: PollMode, now: number, exit: Exit): PollMode {
  return mode.mode === 'aggressive' && now >= leavesAt(mode, exit) ? startHealthy(now) : mode
}

/** The earliest end of aggressive mode. */
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
