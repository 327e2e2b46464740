import { type GroupState, heldGrant } from './group-state.ts'
import type { LatencyStats } from './latency-histogram.ts'
import type { PollMode } from './poll-mode.ts'
import type { WakeSource } from './ports.ts'
import type { WakeCounters } from './wake-counters.ts'

/** The manager's part of `/stats`; the field names are those of the API. */
export interface SharedStateStats {
  readonly local_sidecars: number
  readonly group_backoff: {
    readonly groups_tracked: number
    readonly groups_in_flight: number
    readonly groups_backed_off: number
    /** A bounded number of groups, those in use first. */
    readonly groups: readonly GroupStats[]
  }
  readonly wakes: Readonly<Record<WakeSource, number>>
  /** From the hint reaching the primary to the end of the pop that found messages. */
  readonly wake_latency: Readonly<Record<WakeSource, LatencyStats>>
  /** `since` uses the clock of the ports. */
  readonly mode: Pick<PollMode, 'mode' | 'since' | 'why'>
  readonly counters: Readonly<Omit<WakeCounters, 'wakes' | 'latencies' | 'granted' | 'found'>>
}

export interface GroupStats {
  readonly key: string
  readonly intervalMs: number
  readonly consecutiveEmpty: number
  readonly inFlight: boolean
  readonly waiting: number
  readonly nextCheckInMs: number
}

export interface StatsSources {
  readonly sidecars: number
  readonly groups: Iterable<GroupState>
  readonly counters: WakeCounters
  readonly mode: PollMode
  readonly backoffThreshold: number
  readonly groupsMax: number
  readonly dueAt: (group: GroupState) => number
  readonly now: number
}

export function buildStats(sources: StatsSources): SharedStateStats {
  const { counters, mode, backoffThreshold } = sources
  const groups = [...sources.groups]
  const inUse = groups.filter(isInUse)
  const listed = [...inUse, ...groups.filter((group) => !isInUse(group))]
  const { wakes, latencies, ...others } = counters
  return {
    local_sidecars: sources.sidecars,
    group_backoff: {
      groups_tracked: groups.length,
      groups_in_flight: groups.filter((group) => heldGrant(group) !== undefined).length,
      groups_backed_off: groups.filter(
        (group) => group.backoff.consecutiveEmpty >= backoffThreshold,
      ).length,
      groups: listed.slice(0, sources.groupsMax).map((group) => statsOf(group, sources)),
    },
    wakes: { ...wakes },
    wake_latency: latencyStats(latencies),
    mode: { mode: mode.mode, since: mode.since, why: mode.why },
    counters: others,
  }
}

function latencyStats(latencies: WakeCounters['latencies']): SharedStateStats['wake_latency'] {
  const entries = Object.entries(latencies).map(([source, histogram]) => [
    source,
    histogram.stats(),
  ])
  return Object.fromEntries(entries) as SharedStateStats['wake_latency']
}

function isInUse(group: GroupState): boolean {
  return group.waiters.total > 0 || heldGrant(group) !== undefined
}

function statsOf(group: GroupState, { dueAt, now }: StatsSources): GroupStats {
  return {
    key: group.key,
    intervalMs: group.backoff.intervalMs,
    consecutiveEmpty: group.backoff.consecutiveEmpty,
    inFlight: heldGrant(group) !== undefined,
    waiting: group.waiters.total,
    nextCheckInMs: Math.max(0, Math.round(dueAt(group) - now)),
  }
}
