// What the manager counts, and its part of `/stats`.
import type { PollMode } from './poll-mode.ts'
import { type GrantSource, type WakeSource, wakeSources } from './ports.ts'
import type { SharedStateSettings } from './settings.ts'
import { type GroupState, heldGrant } from './wait-group.ts'

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
  /** The time from the arrival of the hint in the primary to the end of the pop that found messages. */
  readonly wake_latency: Readonly<Record<WakeSource, LatencyStats>>
  /** `since` uses the clock of the ports. */
  readonly mode: Pick<PollMode, 'mode' | 'since' | 'why'>
  readonly counters: Readonly<Omit<WakeCounters, 'wakes' | 'latencies'>>
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
  readonly settings: SharedStateSettings
  readonly dueAt: (group: GroupState) => number
  readonly now: number
}

export function buildStats(sources: StatsSources): SharedStateStats {
  const { counters, mode, settings } = sources
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
        (group) => group.backoff.consecutiveEmpty >= settings.backoffThreshold,
      ).length,
      groups: listed.slice(0, settings.statsGroupsMax).map((group) => statsOf(group, sources)),
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

/** Counters since the start, for `/stats` and metrics. */
export class WakeCounters {
  readonly wakes = bySource(() => 0)
  /** The time from the hint to the end of the pop that found messages. */
  readonly latencies = bySource(() => new LatencyHistogram())
  /** First queries of new waiters. */
  requests = 0
  /** New waiters that needed no first query, because their group was known to be empty. */
  requestsSpared = 0
  /** Hints per consumer group that peers did not get, because waiters of this node took everything. */
  hintsServed = 0
  /** Pops that found nothing, by what caused them. */
  readonly emptyPops: Record<GrantSource, number> = { request: 0, ...bySource(() => 0) }
  /** Hints that arrived during a pop and caused another pop. */
  dirtied = 0
  /** Grants that no worker took in time. */
  deliveryTimeouts = 0
  /** Pops that did not end in time. */
  popTimeouts = 0
  /** Releases and confirmations of grants that had been taken back. */
  late = 0
  contended = 0
  /** Waiters refused because the group table was full. */
  refusedGroups = 0
  fallbackChecks = 0
  /** Groups whose work a fallback poll found before any hint. */
  unannounced = 0
}

function bySource<T>(make: () => T): Record<WakeSource, T> {
  const entries = wakeSources.map((source) => [source, make()])
  return Object.fromEntries(entries) as Record<WakeSource, T>
}

/** Durations in fixed buckets, so that histograms can be added up. */
export interface LatencyStats {
  readonly count: number
  readonly sumMs: number
  readonly maxMs: number
  /** Cumulative counts: durations of at most `leMs`; null: all. */
  readonly buckets: readonly { readonly leMs: number | null; readonly count: number }[]
}

const bounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000] as const

export class LatencyHistogram {
  /** One count more than there are bounds: the last is for durations above all bounds. */
  readonly #counts: number[] = Array.from({ length: bounds.length + 1 }, () => 0)
  #count = 0
  #sumMs = 0
  #maxMs = 0

  record(ms: number): void {
    const index = bounds.findIndex((bound) => ms <= bound)
    const slot = index < 0 ? bounds.length : index
    this.#counts[slot] = (this.#counts[slot] as number) + 1
    this.#count += 1
    this.#sumMs += ms
    this.#maxMs = Math.max(this.#maxMs, ms)
  }

  stats(): LatencyStats {
    let sum = 0
    const buckets = this.#counts.map((count, slot) => {
      sum += count
      return { leMs: bounds[slot] ?? null, count: sum }
    })
    return { count: this.#count, sumMs: round(this.#sumMs), maxMs: round(this.#maxMs), buckets }
  }
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100
}
