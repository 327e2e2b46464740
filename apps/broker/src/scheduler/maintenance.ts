// The timers of a node. Knows the times at which something falls due (by the database's clock) and runs the
// job for each, never early and at most a few milliseconds late.
//
// Due times come from two sources. A due poll each second returns everything due within the next 1.5 s. For
// earlier times, the worker, the NOTIFY or the peer that caused them sends a notice. The next poll replaces
// inexact notices. Notices far ahead are not kept, because polls see them in time, on peers as well. A dead
// node loses nothing: all nodes poll, all run the jobs, and row locks arbitrate.

import type { DueTimes } from '@rouse/storage'
import type { Clock } from '../clock.ts'
import type { Due } from '../ipc.ts'
import type { Logger } from '../log.ts'
import { DatabaseClock } from './database-clock.ts'
import { DeadlineList } from './due-list.ts'
import { type ChoreRunner, oneAtATime } from './job-runner.ts'
import type { Chore, FiredBy, Service } from './service.ts'

export const choreNames = ['reap', 'promote', 'cron', 'retain'] as const
export type ChoreName = (typeof choreNames)[number]

const lookEveryMs = 1_000
/** More than the poll interval, so that a time one second ahead has been seen when it comes. */
const horizonMs = 1_500
/**
 * Notices are kept this far ahead. Once the horizon would do, because later polls see everything committed.
 * Twice, because a poll may be slow or fail, and nodes know the database's clock only to within a round trip.
 */
const toldHorizonMs = 2 * horizonMs
/** Limits due polls to forty a second, however many are requested. */
const lookGapMs = 25
/** Something overdue that could not be moved is locked at the moment. */
const overdueAgainMs = 50
const overdueAgainMsMax = 800
const never = Number.POSITIVE_INFINITY

export interface TimersOptions {
  readonly look: (horizonMs: number) => Promise<DueTimes>
  readonly chores: Readonly<Record<ChoreName, Chore>>
  readonly clock: Clock
  readonly log: Logger
}

export class Timers implements Service {
  readonly #options: TimersOptions
  readonly #runners: Readonly<Record<ChoreName, ChoreRunner>>
  readonly #due = new DeadlineList<ChoreName>()
  readonly #databaseClock = new DatabaseClock()
  #running = false
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = never
  #lookAtMs = never
  #lookBegunMs = Number.NEGATIVE_INFINITY
  #looking: Promise<void> | undefined
  /** Notices that arrived during a poll, which may not have seen them. */
  #toldMeanwhile = new DeadlineList<ChoreName>()
  #askedMeanwhile = false
  #overdueMs = overdueAgainMs
  #hasWindows = false
  #failing = false
  #looks = 0
  /** Jobs that were not started by a due poll. */
  readonly #unseen = new Set<ChoreName>()

  constructor(options: TimersOptions) {
    const { chores, log } = options
    this.#options = options
    this.#runners = {
      reap: oneAtATime('reap', this.#lookingAfter('reap', chores.reap), log),
      promote: oneAtATime('promote', this.#lookingAfter('promote', chores.promote), log),
      cron: oneAtATime('cron', chores.cron, log),
      retain: oneAtATime('retain', chores.retain, log),
    }
  }

  /** Resolves after the first due poll, which starts the jobs for everything that is overdue. */
  async start(): Promise<void> {
    if (this.#running) return
    this.#running = true
    this.#looking = this.#lookAround()
    await this.#looking
  }

  async stop(): Promise<void> {
    this.#running = false
    clearTimeout(this.#timer)
    await this.#looking
    await Promise.all(choreNames.map((chore) => this.#runners[chore].stop()))
  }

  /** Something falls due at this time of the database's clock. False: too far ahead, left to polls. */
  expect(dueAtMs: number, chore: ChoreName = 'promote'): boolean {
    if (this.#isFar(dueAtMs)) return false
    if (this.#looking !== undefined) this.#toldMeanwhile.add(dueAtMs, chore)
    this.#due.add(dueAtMs, chore)
    this.#arm()
    return true
  }

  /** Like `expect`, after a delay. Undefined if it is far ahead or the database's clock is not known yet. */
  expectIn(inMs: number, chore: ChoreName = 'promote'): number | undefined {
    const nowMs = this.#databaseClock.latestMs(this.#options.clock.nowMs())
    if (nowMs === undefined) return undefined
    const dueAtMs = Math.ceil(nowMs + inMs)
    return this.expect(dueAtMs, chore) ? dueAtMs : undefined
  }

  /** A worker's notice. The result is for peers, which poll for themselves if it is far ahead. */
  expectDue(due: Due): number | undefined {
    if ('inMs' in due) return this.expectIn(due.inMs)
    return this.expect(due.atMs) ? due.atMs : undefined
  }

  /** Something may be due, or fall due, at an unknown time. */
  look(inMs = 0): void {
    this.#askedMeanwhile = true
    const soonestMs = Math.max(this.#options.clock.nowMs() + inMs, this.#lookBegunMs + lookGapMs)
    this.#lookAtMs = Math.min(this.#lookAtMs, soonestMs)
    this.#arm()
  }

  /** A pop that finds nothing may have closed a lane for the rest of its queue's window. */
  popFoundNothing(): void {
    if (this.#hasWindows) this.look()
  }

  run(chore: ChoreName, firedBy: FiredBy): void {
    if (!this.#running) return
    this.#unseen.add(chore)
    this.#runners[chore].run(firedBy)
  }

  stats(): Readonly<Record<string, unknown>> {
    const { clock } = this.#options
    const databaseMs = this.#databaseClock.earliestMs(clock.nowMs())
    return {
      known: this.#due.size,
      looks: this.#looks,
      runs: Object.fromEntries(choreNames.map((chore) => [chore, this.#runners[chore].runs])),
      skewMs: databaseMs === undefined ? null : Math.round(databaseMs - clock.wallMs()),
      roundTripMs: this.#databaseClock.roundTripMs() ?? null,
    }
  }

  /** A job skips locked rows. A due poll afterwards shows whether it did, and repeats while it does. */
  #lookingAfter(name: ChoreName, chore: Chore): Chore {
    return {
      run: async (firedBy) => {
        const isUnseen = this.#unseen.delete(name)
        const isMore = await chore.run(firedBy)
        if (isUnseen) this.look(overdueAgainMs)
        return isMore
      },
    }
  }

  /** True only if it is certain: never before the database's clock is known. */
  #isFar(dueAtMs: number): boolean {
    const nowMs = this.#databaseClock.latestMs(this.#options.clock.nowMs())
    return nowMs !== undefined && dueAtMs > nowMs + toldHorizonMs
  }

  /** One timer, for the earliest deadline. */
  #arm(): void {
    const dueAtMs = this.#databaseClock.toLocal(this.#due.firstDueAt()) ?? never
    const atMs = Math.min(dueAtMs, this.#looking === undefined ? this.#lookAtMs : never)
    if (!this.#running || atMs >= this.#timerAtMs) return
    clearTimeout(this.#timer)
    this.#timerAtMs = atMs
    const inMs = Math.max(0, Math.ceil(atMs - this.#options.clock.nowMs()))
    this.#timer = setTimeout(() => this.#wake(), Math.min(inMs, lookEveryMs))
  }

  #wake(): void {
    this.#timerAtMs = never
    const nowMs = this.#options.clock.nowMs()
    const databaseMs = this.#databaseClock.earliestMs(nowMs)
    if (databaseMs !== undefined) {
      for (const chore of this.#due.takeDue(databaseMs)) this.run(chore, 'timer')
    }
    if (nowMs >= this.#lookAtMs && this.#looking === undefined) this.#looking = this.#lookAround()
    this.#arm()
  }

  async #lookAround(): Promise<void> {
    const { clock, log, look } = this.#options
    const sentAtMs = clock.nowMs()
    this.#lookBegunMs = sentAtMs
    this.#looks += 1
    this.#toldMeanwhile = new DeadlineList()
    this.#askedMeanwhile = false
    let againMs = lookEveryMs
    try {
      const times = await look(horizonMs)
      const receivedAtMs = clock.nowMs()
      this.#databaseClock.sample({ sentAtMs, receivedAtMs, databaseMs: times.nowMs })
      againMs = this.#take(times)
      this.#failing = false
    } catch (error) {
      if (this.#running && !this.#failing) {
        log.warn({ reason: (error as Error).message }, 'could not look for what is due')
      }
      this.#failing = true
    }
    this.#looking = undefined
    this.#lookAtMs = sentAtMs + (this.#askedMeanwhile ? lookGapMs : Math.max(lookGapMs, againMs))
    this.#arm()
  }

  /** Returns the delay until the next poll. */
  #take(times: DueTimes): number {
    this.#due.forgetUntil(times.completeUntilMs)
    this.#due.addAll(this.#toldMeanwhile)
    this.#hasWindows = times.hasWindows
    for (const chore of choreNames) {
      for (const dueAtMs of times[chore]) {
        if (dueAtMs > times.nowMs) this.#due.add(dueAtMs, chore)
        else if (this.#running) this.#runners[chore].run('timer')
      }
    }
    const isOverdue = [...times.reap, ...times.promote].some((dueAtMs) => dueAtMs <= times.nowMs)
    this.#overdueMs = isOverdue
      ? Math.min(this.#overdueMs * 2, overdueAgainMsMax)
      : overdueAgainMs / 2
    const endsInMs = times.completeUntilMs - times.nowMs
    return Math.min(lookEveryMs, endsInMs, isOverdue ? this.#overdueMs : lookEveryMs)
  }
}
