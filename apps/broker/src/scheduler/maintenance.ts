// The clock of a node. It knows times at which something falls due (by the database's clock) and has the chore for it
// run then, not earlier and a few milliseconds later at most.
//
// Where times come from: a look at the database each second, which sees all that falls due in the next one and a half;
// and, for what is due sooner, whoever made it so tells: a worker, NOTIFY, a peer. What is told and not exactly known
// is replaced by the next look; what is told and far ahead is not kept, as looks see it in time, those of peers as well.
// Nothing is lost with a node: all nodes look, all fire, row locks arbitrate.

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
/** More than the time between looks, so that what is a second away has been seen when it comes. */
const horizonMs = 1_500
/** What is told is kept this far ahead. Once the horizon would do: whatever is told was committed, so looks to come see
 * it. Twice, as a look may be slow or fail, and nodes know the database's clock to within a round trip only. */
const toldHorizonMs = 2 * horizonMs
/** However many ask for a look, there are no more than forty a second. */
const lookGapMs = 25
/** What is overdue and could not be moved is locked by somebody just now. */
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
  /** Told while a look was under way, which may not have seen them. */
  #toldMeanwhile = new DeadlineList<ChoreName>()
  #askedMeanwhile = false
  #overdueMs = overdueAgainMs
  #hasWindows = false
  #failing = false
  #looks = 0
  /** Chores that were not called for by a look. */
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

  /** Resolves after the first look: what was due while nobody was there is being done. */
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

  /** Something falls due at this time of the database's clock. An earlier time replaces a later one. False: it is so far
   * ahead that it is left to looks. */
  expect(dueAtMs: number, chore: ChoreName = 'promote'): boolean {
    if (this.#isFar(dueAtMs)) return false
    if (this.#looking !== undefined) this.#toldMeanwhile.add(dueAtMs, chore)
    this.#due.add(dueAtMs, chore)
    this.#arm()
    return true
  }

  /** The same, counted from now. Answers that time, unless it is far ahead or the database's clock is not known yet. */
  expectIn(inMs: number, chore: ChoreName = 'promote'): number | undefined {
    const nowMs = this.#databaseClock.latestMs(this.#options.clock.nowMs())
    if (nowMs === undefined) return undefined
    const dueAtMs = Math.ceil(nowMs + inMs)
    return this.expect(dueAtMs, chore) ? dueAtMs : undefined
  }

  /** As workers tell it; the answer is for peers, who look for themselves at what is far ahead. */
  expectDue(due: Due): number | undefined {
    if ('inMs' in due) return this.expectIn(due.inMs)
    return this.expect(due.atMs) ? due.atMs : undefined
  }

  /** Something may have become due, or will, that nobody told the time of. */
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

  /** A chore passes over what somebody has locked just now. A look shows whether it did, and comes again while it is so. */
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

  /** Surely so: as long as the database's clock is not known, nothing is. */
  #isFar(dueAtMs: number): boolean {
    const nowMs = this.#databaseClock.latestMs(this.#options.clock.nowMs())
    return nowMs !== undefined && dueAtMs > nowMs + toldHorizonMs
  }

  /** One timer, for whatever comes first. */
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

  /** Answers in how many ms to look again. */
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
