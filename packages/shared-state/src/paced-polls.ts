import { FallbackPoll, type GroupWithWork } from './fallback-poll.ts'
import type { GroupKey } from './group-key.ts'
import type { GroupState } from './group-state.ts'
import {
  afterFault,
  afterFaultCleared,
  afterPoll,
  type Fault,
  leavesAt,
  type PollMode,
  type StandingFault,
  startHealthy,
  withoutWaiters,
} from './poll-mode.ts'
import type { SharedStateSettings } from './settings.ts'
import type { WakeCounters } from './wake-counters.ts'

export interface PacedPollsContext {
  readonly settings: SharedStateSettings
  readonly counters: WakeCounters
  readonly isAdvertised: (group: GroupState) => boolean
}

/** Fallback polls at the pace of the poll mode, which in turn depends on what they find. */
export class PacedPolls {
  readonly #context: PacedPollsContext
  readonly fallback: FallbackPoll
  #mode: PollMode
  #coveredAt = Number.NEGATIVE_INFINITY
  /** The number of the last poll that counted as quiet. */
  #quietPoll = 0

  constructor(context: PacedPollsContext, now: number) {
    this.#context = context
    this.#mode = startHealthy(now)
    this.fallback = new FallbackPoll({
      settings: context.settings,
      isUrgent: (group) => this.#mode.mode === 'aggressive' || !context.isAdvertised(group),
    })
  }

  get mode(): PollMode {
    return this.#mode
  }

  reportFault(fault: Fault, now: number): void {
    const wasHealthy = this.#mode.mode === 'healthy'
    this.#mode = afterFault(this.#mode, fault, now)
    if (wasHealthy) this.fallback.touchAll()
  }

  clearFault(fault: StandingFault, now: number): void {
    this.#mode = afterFaultCleared(this.#mode, fault, now)
  }

  ask(waiting: ReadonlySet<GroupState>, now: number): GroupKey[] {
    if (waiting.size === 0) this.#mode = withoutWaiters(this.#mode, now, this.#context.settings)
    const due = this.fallback.ask(waiting, now)
    if (due?.length === 0) this.#coveredByPops(now)
    return due ?? []
  }

  /** Returns the groups that have work. */
  answered(keysWithWork: Iterable<GroupKey>, now: number): readonly GroupWithWork[] {
    const withWork = this.fallback.answered(keysWithWork, now)
    if (withWork === undefined) return []
    this.#context.counters.fallbackChecks += 1
    if (!withWork.some(({ isUnannounced }) => isUnannounced)) this.checked('nothing', now)
    return withWork
  }

  /**
   * Records what the last poll found, reported by the poll itself or by the pops for the groups with work. A
   * poll counts as quiet at most once.
   */
  checked(found: 'nothing' | 'unannounced', now: number): void {
    const { counters } = this.#context
    if (found === 'unannounced') counters.unannounced += 1
    else if (this.#quietPoll === counters.fallbackChecks) return
    else this.#quietPoll = counters.fallbackChecks
    this.#note(found, now)
  }

  failed(now: number): void {
    this.fallback.failed(now)
    this.reportFault('fetch_error', now)
  }

  /**
   * Pops have covered every group that would have been due. That counts as a poll, at most once per
   * `maxIntervalMs`.
   */
  #coveredByPops(now: number): void {
    if (now - this.#coveredAt < this.#context.settings.maxIntervalMs) return
    this.#coveredAt = now
    this.#note('nothing', now)
  }

  #note(found: 'nothing' | 'unannounced', now: number): void {
    this.#mode = afterPoll(this.#mode, found, now, this.#context.settings)
  }

  /** Without waiters there is nothing to poll, only perhaps a mode to leave. */
  nextAt(waiting: ReadonlySet<GroupState>): number {
    if (waiting.size > 0) return this.fallback.nextDueAt()
    if (this.#mode.mode === 'healthy') return Number.POSITIVE_INFINITY
    return leavesAt(this.#mode, this.#context.settings)
  }
}
