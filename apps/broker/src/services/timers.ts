// The clock of a node. It knows times at which something falls due (by the database's clock) and has the chore for it
// run then, not earlier and a few milliseconds later at most.
//
// Where times come from: a look at the database each second, which sees all that falls due in the next one and a half;
// and, for what is due sooner, whoever made it so tells: a worker, NOTIFY, a peer. What is told and not exactly known
// is replaced by the next look. Nothing is lost with a node: all nodes look, all fire, row locks arbitrate.
import type { Clock } from '../clock.ts'
import type { Due } from '../ipc.ts'
import type { Logger } from '../log.ts'
import type { DueTimes } from '../statements/due-times.ts'
import { DatabaseClock } from './database-clock.ts'
import { DeadlineHeap } from './deadline-heap.ts'
import { oneAtATime } from './one-at-a-time.ts'
import type { Chore, FiredBy, Service } from './service.ts'

export const choreNames = ['reap', 'promote', 'cron', 'retain'] as const
export type ChoreName = (typeof choreNames)[number]

const lookEveryMs = 1_000
/** More than the time between looks, so that what is a second away has been seen when it comes. */
const horizonMs = 1_500
/** However many ask for a look, there are no more than forty a second. */
const lookGapMs = 25
/** What is overdue and could not be moved is locked by somebody just now. */
const overdueAgainMs = 50
const overdueAgainMsMax = 800

export interface TimersOptions {
  readonly look: (horizonMs: number) => Promise<DueTimes>
  readonly chores: Readonly<Record<ChoreName, Chore>>
  readonly clock: Clock
  readonly log: Logger
}

export interface Timers extends Service {
  /** Something falls due at this time of the database's clock. An earlier time replaces a later one. */
  expect(dueAtMs: number, chore?: ChoreName): void
  expectIn(inMs: number, chore?: ChoreName): number | undefined
  /** As workers tell it. Answers the time, for peers, unless the database's clock is not known yet. */
  expectDue(due: Due): number | undefined
  /** Something may have become due, or will, that nobody told the time of. */
  look(): void
  /** A pop that finds nothing may have closed a lane for the rest of its queue's window. */
  popFoundNothing(): void
  run(chore: ChoreName, firedBy: FiredBy): void
  stats(): Readonly<Record<string, unknown>>
}

export function createTimers({ look: ask, chores, clock, log }: TimersOptions): Timers {
  const heap = new DeadlineHeap<ChoreName>()
  const databaseClock = new DatabaseClock()
  const runners = {
    reap: oneAtATime('reap', chores.reap, log),
    promote: oneAtATime('promote', chores.promote, log),
    cron: oneAtATime('cron', chores.cron, log),
    retain: oneAtATime('retain', chores.retain, log),
  }
  let running = false
  let timer: NodeJS.Timeout | undefined
  let timerAtMs = Number.POSITIVE_INFINITY
  let lookAtMs = Number.NEGATIVE_INFINITY
  let lookBegunMs = Number.NEGATIVE_INFINITY
  let looking: Promise<void> | undefined
  /** Told while a look was under way, which may not have seen them. */
  let toldMeanwhile: { readonly dueAtMs: number; readonly chore: ChoreName }[] = []
  let askedMeanwhile = false
  let overdueMs = overdueAgainMs
  let hasWindows = false
  let failing = false
  let looks = 0

  /** One timer, for whatever comes first. */
  function arm(): void {
    const dueAtMs = databaseClock.toLocal(heap.firstDueAt()) ?? Number.POSITIVE_INFINITY
    const atMs = Math.min(dueAtMs, looking === undefined ? lookAtMs : Number.POSITIVE_INFINITY)
    if (!running || atMs >= timerAtMs) return
    clearTimeout(timer)
    timerAtMs = atMs
    timer = setTimeout(wake, Math.min(lookEveryMs, Math.max(0, Math.ceil(atMs - clock.nowMs()))))
  }

  function wake(): void {
    timerAtMs = Number.POSITIVE_INFINITY
    const nowMs = clock.nowMs()
    const databaseMs = databaseClock.earliestMs(nowMs)
    if (databaseMs !== undefined) {
      for (const chore of heap.takeDue(databaseMs)) runners[chore].run('timer')
    }
    if (nowMs >= lookAtMs && looking === undefined) looking = lookAround()
    arm()
  }

  async function lookAround(): Promise<void> {
    lookBegunMs = clock.nowMs()
    looks += 1
    toldMeanwhile = []
    askedMeanwhile = false
    let nextMs = lookEveryMs
    try {
      const times = await ask(horizonMs)
      const receivedAtMs = clock.nowMs()
      databaseClock.sample({
        sentAtMs: lookBegunMs,
        receivedAtMs,
        databaseMs: times.nowMs,
      })
      nextMs = Math.min(lookEveryMs, take(times))
      failing = false
    } catch (error) {
      if (running && !failing) {
        log.warn({ reason: (error as Error).message }, 'could not look for what is due')
      }
      failing = true
    }
    looking = undefined
    lookAtMs = lookBegunMs + (askedMeanwhile ? lookGapMs : Math.max(lookGapMs, nextMs))
    arm()
  }

  /** Answers in how many ms to look again, if not in a second. */
  function take(times: DueTimes): number {
    heap.forgetUntil(times.completeUntilMs)
    for (const { dueAtMs, chore } of toldMeanwhile) heap.add(dueAtMs, chore)
    hasWindows = times.hasWindows
    for (const chore of choreNames) {
      for (const dueAtMs of times[chore]) {
        if (dueAtMs > times.nowMs) heap.add(dueAtMs, chore)
        else runners[chore].run('timer')
      }
    }
    const isOverdue = [...times.reap, ...times.promote].some((dueAtMs) => dueAtMs <= times.nowMs)
    overdueMs = isOverdue ? Math.min(overdueMs * 2, overdueAgainMsMax) : overdueAgainMs / 2
    const endsInMs = times.completeUntilMs - times.nowMs
    return Math.min(endsInMs, isOverdue ? overdueMs : lookEveryMs)
  }

  const timers: Timers = {
    async start() {
      if (running) return
      running = true
      looking = lookAround()
      await looking
    },
    async stop() {
      running = false
      clearTimeout(timer)
      await looking
      await Promise.all(choreNames.map((chore) => runners[chore].stop()))
    },
    expect(dueAtMs, chore = 'promote') {
      if (looking !== undefined) toldMeanwhile.push({ dueAtMs, chore })
      heap.add(dueAtMs, chore)
      arm()
    },
    expectIn(inMs, chore = 'promote') {
      const nowMs = databaseClock.latestMs(clock.nowMs())
      if (nowMs === undefined) return undefined
      const dueAtMs = Math.ceil(nowMs + inMs)
      timers.expect(dueAtMs, chore)
      return dueAtMs
    },
    expectDue(due) {
      if ('inMs' in due) return timers.expectIn(due.inMs)
      timers.expect(due.atMs)
      return due.atMs
    },
    look() {
      askedMeanwhile = true
      lookAtMs = Math.min(lookAtMs, Math.max(clock.nowMs(), lookBegunMs + lookGapMs))
      arm()
    },
    popFoundNothing() {
      if (hasWindows) timers.look()
    },
    run(chore, firedBy) {
      if (running) runners[chore].run(firedBy)
    },
    stats() {
      const databaseMs = databaseClock.earliestMs(clock.nowMs())
      return {
        known: heap.size,
        looks,
        runs: Object.fromEntries(choreNames.map((chore) => [chore, runners[chore].runs])),
        skewMs: databaseMs === undefined ? null : Math.round(databaseMs - clock.wallMs()),
        roundTripMs: databaseClock.roundTripMs() ?? null,
      }
    },
  }
  return timers
}
