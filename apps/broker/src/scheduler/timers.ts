// The timers of a node. They know when something is due, by the database's clock, and run its job at that
// time: never early, and at most a few milliseconds late.
//
// Due times come from two sources. A due poll, once a second, returns everything that is due within the next
// 1.5 s. Something may be scheduled after a poll and due before the next one. A worker, a NOTIFY or a peer
// then announces its due time in a notice. Notices may be inexact; the next poll replaces them. A notice for
// a time far ahead is not kept, because a later poll returns that time soon enough. If a node dies, nothing
// is lost: all nodes poll and run the jobs, and row locks decide which node handles a row.

import type { DueTimes } from '@rouse/storage'
import type { Clock } from '../clock.ts'
import type { Due } from '../ipc.ts'
import type { Logger } from '../log.ts'
import { DatabaseClock } from './database-clock.ts'
import { DeadlineList } from './due-list.ts'
import { type JobRunner, oneAtATime } from './job-runner.ts'
import type { FiredBy, Job, Service } from './service.ts'

export const jobNames = ['reap', 'promote', 'cron', 'retain'] as const
export type JobName = (typeof jobNames)[number]

const pollEveryMs = 1_000
/** More than the poll interval, so that a poll returns each due time in advance. */
const horizonMs = 1_500
/**
 * Notices up to this far ahead are kept. In theory the horizon of a poll is enough, because later polls
 * return everything that is committed. The horizon is doubled because a poll may be slow or fail, and because
 * a node knows the database's clock only to within a round trip.
 */
const noticeHorizonMs = 2 * horizonMs
/** Limits due polls to forty a second, however many are requested. */
const pollGapMs = 25
/**
 * Rows that are still overdue after their job ran are locked. The next due polls follow at growing intervals,
 * from `overdueAgainMs` to `overdueAgainMsMax`.
 */
const overdueAgainMs = 50
const overdueAgainMsMax = 800
const never = Number.POSITIVE_INFINITY

export interface TimersOptions {
  readonly readDueTimes: (horizonMs: number) => Promise<DueTimes>
  readonly jobs: Readonly<Record<JobName, Job>>
  readonly clock: Clock
  readonly log: Logger
}

export class Timers implements Service {
  readonly #options: TimersOptions
  readonly #runners: Readonly<Record<JobName, JobRunner>>
  readonly #due = new DeadlineList<JobName>()
  readonly #databaseClock = new DatabaseClock()
  #running = false
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = never
  #pollAtMs = never
  #pollStartedMs = Number.NEGATIVE_INFINITY
  #polling: Promise<void> | undefined
  /** Notices that arrived during a poll. The result of the poll may lack them. */
  #noticesMeanwhile = new DeadlineList<JobName>()
  #requestedMeanwhile = false
  #overdueMs = overdueAgainMs
  #hasWindows = false
  #failing = false
  #polls = 0
  /** Jobs that were not started by a due poll. */
  readonly #notPolled = new Set<JobName>()

  constructor(options: TimersOptions) {
    const { jobs, log } = options
    this.#options = options
    this.#runners = {
      reap: oneAtATime('reap', this.#pollingAfter('reap', jobs.reap), log),
      promote: oneAtATime('promote', this.#pollingAfter('promote', jobs.promote), log),
      cron: oneAtATime('cron', jobs.cron, log),
      retain: oneAtATime('retain', jobs.retain, log),
    }
  }

  /** Resolves after the first due poll, which starts the jobs for everything that is overdue. */
  async start(): Promise<void> {
    if (this.#running) return
    this.#running = true
    this.#polling = this.#poll()
    await this.#polling
  }

  async stop(): Promise<void> {
    this.#running = false
    clearTimeout(this.#timer)
    await this.#polling
    await Promise.all(jobNames.map((job) => this.#runners[job].stop()))
  }

  /**
   * Something is due at this time of the database's clock. Returns false if the time is far ahead, because a
   * later poll finds it.
   */
  expect(dueAtMs: number, job: JobName = 'promote'): boolean {
    if (this.#isFar(dueAtMs)) return false
    if (this.#polling !== undefined) this.#noticesMeanwhile.add(dueAtMs, job)
    this.#due.add(dueAtMs, job)
    this.#arm()
    return true
  }

  /** Like `expect`, after a delay. Undefined if the time is far ahead, or the database's clock is unknown. */
  expectIn(inMs: number, job: JobName = 'promote'): number | undefined {
    const nowMs = this.#databaseClock.latestMs(this.#options.clock.nowMs())
    if (nowMs === undefined) return undefined
    const dueAtMs = Math.ceil(nowMs + inMs)
    return this.expect(dueAtMs, job) ? dueAtMs : undefined
  }

  /** A worker's notice. Returns the due time to send to peers. Undefined if polls will find it in time. */
  expectDue(due: Due): number | undefined {
    if ('inMs' in due) return this.expectIn(due.inMs)
    return this.expect(due.atMs) ? due.atMs : undefined
  }

  /** Requests a due poll, because something may be due now or later at an unknown time. */
  pollDueTimes(inMs = 0): void {
    this.#requestedMeanwhile = true
    const soonestMs = Math.max(this.#options.clock.nowMs() + inMs, this.#pollStartedMs + pollGapMs)
    this.#pollAtMs = Math.min(this.#pollAtMs, soonestMs)
    this.#arm()
  }

  /** A pop that finds nothing may have blocked a lane until the `windowBuffer` of the queue is over. */
  popFoundNothing(): void {
    if (this.#hasWindows) this.pollDueTimes()
  }

  run(job: JobName, firedBy: FiredBy): void {
    if (!this.#running) return
    this.#notPolled.add(job)
    this.#runners[job].run(firedBy)
  }

  /** How far the database's clock is ahead of the wall clock, within half a round trip. Undefined: not known. */
  databaseAheadMs(): number | undefined {
    const { clock } = this.#options
    const nowMs = clock.nowMs()
    const [earliestMs, latestMs] = [
      this.#databaseClock.earliestMs(nowMs),
      this.#databaseClock.latestMs(nowMs),
    ]
    if (earliestMs === undefined || latestMs === undefined) return undefined
    return (earliestMs + latestMs) / 2 - clock.wallMs()
  }

  stats(): Readonly<Record<string, unknown>> {
    const { clock } = this.#options
    const databaseMs = this.#databaseClock.earliestMs(clock.nowMs())
    return {
      known: this.#due.size,
      looks: this.#polls,
      runs: Object.fromEntries(jobNames.map((job) => [job, this.#runners[job].runs])),
      skewMs: databaseMs === undefined ? null : Math.round(databaseMs - clock.wallMs()),
      roundTripMs: this.#databaseClock.roundTripMs() ?? null,
    }
  }

  /** Jobs skip locked rows. A due poll after the job finds rows that were skipped and runs the job again. */
  #pollingAfter(name: JobName, job: Job): Job {
    return {
      run: async (firedBy) => {
        const isNotPolled = this.#notPolled.delete(name)
        const isMore = await job.run(firedBy)
        if (isNotPolled) this.pollDueTimes(overdueAgainMs)
        return isMore
      },
    }
  }

  /** Whether the time is certainly far ahead. False until the database's clock is known. */
  #isFar(dueAtMs: number): boolean {
    const nowMs = this.#databaseClock.latestMs(this.#options.clock.nowMs())
    return nowMs !== undefined && dueAtMs > nowMs + noticeHorizonMs
  }

  /** One timer, for the earliest deadline. */
  #arm(): void {
    const dueAtMs = this.#databaseClock.toLocal(this.#due.firstDueAt()) ?? never
    const atMs = Math.min(dueAtMs, this.#polling === undefined ? this.#pollAtMs : never)
    if (!this.#running || atMs >= this.#timerAtMs) return
    clearTimeout(this.#timer)
    this.#timerAtMs = atMs
    const inMs = Math.max(0, Math.ceil(atMs - this.#options.clock.nowMs()))
    this.#timer = setTimeout(() => this.#wake(), Math.min(inMs, pollEveryMs))
  }

  #wake(): void {
    this.#timerAtMs = never
    const nowMs = this.#options.clock.nowMs()
    const databaseMs = this.#databaseClock.earliestMs(nowMs)
    if (databaseMs !== undefined) {
      for (const job of this.#due.takeDue(databaseMs)) this.run(job, 'timer')
    }
    if (nowMs >= this.#pollAtMs && this.#polling === undefined) this.#polling = this.#poll()
    this.#arm()
  }

  async #poll(): Promise<void> {
    const { clock, log, readDueTimes } = this.#options
    const sentAtMs = clock.nowMs()
    this.#pollStartedMs = sentAtMs
    this.#polls += 1
    this.#noticesMeanwhile = new DeadlineList()
    this.#requestedMeanwhile = false
    let againMs = pollEveryMs
    try {
      const times = await readDueTimes(horizonMs)
      const receivedAtMs = clock.nowMs()
      this.#databaseClock.sample({ sentAtMs, receivedAtMs, databaseMs: times.nowMs })
      againMs = this.#take(times)
      this.#failing = false
    } catch (error) {
      if (this.#running && !this.#failing) {
        log.warn({ reason: (error as Error).message }, 'due poll failed')
      }
      this.#failing = true
    }
    this.#polling = undefined
    this.#pollAtMs =
      sentAtMs + (this.#requestedMeanwhile ? pollGapMs : Math.max(pollGapMs, againMs))
    this.#arm()
  }

  /** Returns the delay until the next poll. */
  #take(times: DueTimes): number {
    this.#due.forgetUntil(times.completeUntilMs)
    this.#due.addAll(this.#noticesMeanwhile)
    this.#hasWindows = times.hasWindows
    for (const job of jobNames) {
      for (const dueAtMs of times[job]) {
        if (dueAtMs > times.nowMs) this.#due.add(dueAtMs, job)
        else if (this.#running) this.#runners[job].run('timer')
      }
    }
    const isOverdue = [...times.reap, ...times.promote].some((dueAtMs) => dueAtMs <= times.nowMs)
    this.#overdueMs = isOverdue
      ? Math.min(this.#overdueMs * 2, overdueAgainMsMax)
      : overdueAgainMs / 2
    const endsInMs = times.completeUntilMs - times.nowMs
    return Math.min(pollEveryMs, endsInMs, isOverdue ? this.#overdueMs : pollEveryMs)
  }
}
