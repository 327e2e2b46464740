import { FallbackChecks, type GroupWithWork } from './fallback-poll.ts'
import type { GroupKey } from './group-key.ts'
import type { Group } from './group-state.ts'
import {
  afterCheck,
  afterFault,
  afterFaultCleared,
  type Fault,
  leavesAt,
  type PollMode,
  type StandingFault,
  startHealthy,
  whileNobodyWaits,
} from './poll-mode.ts'
import type { SharedStateSettings } from './settings.ts'
import type { WakeCounters } from './wake-counters.ts'

export interface PacedChecksContext {
  readonly settings: SharedStateSettings
  readonly counters: WakeCounters
  readonly isAdvertised: (group: Group) => boolean
}

/** Fallback checks at the pace of the poll mode, which in turn learns from what they find. */
export class PacedChecks {
  readonly #context: PacedChecksContext
  readonly checks: FallbackChecks
  #mode: PollMode
  #lookedAfterAt = Number.NEGATIVE_INFINITY
  /** The number of the last check that counted as quiet. */
  #quietCheck = 0

  constructor(context: PacedChecksContext, now: number) {
    this.#context = context
    this.#mode = startHealthy(now)
    this.checks = new FallbackChecks({
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
    if (wasHealthy) this.checks.touchAll()
  }

  clearFault(fault: StandingFault, now: number): void {
    this.#mode = afterFaultCleared(this.#mode, fault, now)
  }

  ask(waiting: ReadonlySet<Group>, now: number): GroupKey[] {
    if (waiting.size === 0) this.#mode = whileNobodyWaits(this.#mode, now, this.#context.settings)
    const due = this.checks.ask(waiting, now)
    if (due?.length === 0) this.#lookedAfter(now)
    return due ?? []
  }

  /** Returns the groups that have work. */
  answered(keysWithWork: Iterable<GroupKey>, now: number): readonly GroupWithWork[] {
    const withWork = this.checks.answered(keysWithWork, now)
    if (withWork === undefined) return []
    this.#context.counters.fallbackChecks += 1
    if (!withWork.some(({ isNews }) => isNews)) this.checked('nothing', now)
    return withWork
  }

  /** What the last check found: by its own word, or by that of the pops for the groups that it found work for. However many
   * they are, it is quiet once. */
  checked(found: 'nothing' | 'unannounced', now: number): void {
    const { counters } = this.#context
    if (found === 'unannounced') counters.unannounced += 1
    else if (this.#quietCheck === counters.fallbackChecks) return
    else this.#quietCheck = counters.fallbackChecks
    this.#note(found, now)
  }

  failed(now: number): void {
    this.checks.failed(now)
    this.reportFault('fetch_error', now)
  }

  /** Every group that would have been due was popped meanwhile. That is as good as a check, at most so often as
   * an idle group has one. */
  #lookedAfter(now: number): void {
    if (now - this.#lookedAfterAt < this.#context.settings.maxIntervalMs) return
    this.#lookedAfterAt = now
    this.#note('nothing', now)
  }

  #note(found: 'nothing' | 'unannounced', now: number): void {
    this.#mode = afterCheck(this.#mode, found, now, this.#context.settings)
  }

  /** Where nobody waits there is nothing to check, only perhaps a mode to leave. */
  nextAt(waiting: ReadonlySet<Group>): number {
    if (waiting.size > 0) return this.checks.nextDueAt()
    if (this.#mode.mode === 'healthy') return Number.POSITIVE_INFINITY
    return leavesAt(this.#mode, this.#context.settings)
  }
}
