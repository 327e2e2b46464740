// More due times than a node keeps, in virtual time. The node keeps the near ones, and finds the far ones by
// due polls. Jobs for both are on time.
import { mock } from 'node:test'
import { seededRandom } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { createLogger } from '../../src/log.ts'
import { deadlinesMax } from '../../src/scheduler/due-list.ts'
import { Timers } from '../../src/scheduler/timers.ts'

const dayMs = 86_400_000
const roundTripMsMax = 40
/** A node knows the time of the database to within one round trip. Both clocks round, by up to 1 ms each. */
const lateMsMax = roundTripMsMax + 2

/** Timers and a simulated database. Its clock is an hour ahead, and the test chooses the round-trip time. */
function setUp(t: Test, roundTripMs: () => number = () => roundTripMsMax) {
  mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  const databaseMs = () => nowMs + 3_600_000
  const rows = new Set<number>()
  const lateMs = new Map<number, number>()

  async function pass(ms: number): Promise<void> {
    for (let i = 0; i < ms; i += 1) {
      nowMs += 1
      mock.timers.tick(1)
      await new Promise(setImmediate)
    }
  }
  const nothing = { run: async () => false }
  const timers = new Timers({
    clock: { nowMs: () => nowMs, wallMs: () => nowMs },
    log: createLogger({ level: 'silent', node: 'n', process: 'p' }),
    jobs: {
      reap: nothing,
      cron: nothing,
      retain: nothing,
      promote: {
        async run() {
          for (const dueAtMs of rows) {
            if (dueAtMs > databaseMs()) continue
            rows.delete(dueAtMs)
            lateMs.set(dueAtMs, databaseMs() - dueAtMs)
          }
          return false
        },
      },
    },
    async readDueTimes(horizonMs) {
      const tookMs = roundTripMs()
      const thereMs = Math.floor(tookMs / 2)
      await later(thereMs)
      const [seenAtMs, completeUntilMs] = [databaseMs(), databaseMs() + horizonMs]
      const promote = [...rows].filter((dueAtMs) => dueAtMs <= completeUntilMs)
      await later(tookMs - thereMs)
      const others = { reap: [], cron: [], retain: [], hasWindows: false }
      return { nowMs: seenAtMs, completeUntilMs, promote, ...others }
    },
  })
  t.teardown(async () => {
    const stopped = timers.stop()
    await pass(roundTripMsMax)
    await stopped
    mock.timers.reset()
  })
  return {
    timers,
    lateMs,
    databaseMs,
    pass,
    known: () => timers.stats().known as number,
    start: () => Promise.all([timers.start(), pass(roundTripMsMax)]),
    /** Commits a message that is due in `inMs` ms, and notifies the timers. */
    schedule: (inMs: number): number => {
      const dueAtMs = databaseMs() + inMs
      rows.add(dueAtMs)
      timers.expect(dueAtMs)
      return dueAtMs
    },
  }
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}

test('short delays are on time among more far ones than a node keeps', async (t) => {
  const { start, schedule, pass, lateMs, known } = setUp(t)
  await start()
  for (let i = 0; i < 2 * deadlinesMax; i += 1) schedule(dayMs + i)
  t.equal(known(), 0, 'far ones take no space')
  const near = [100, 200, 300].map(schedule)
  await pass(300 + lateMsMax)
  for (const dueAtMs of near) {
    const late = lateMs.get(dueAtMs)
    t.ok(late !== undefined && late <= lateMsMax, `${late} ms late`)
  }
})

test('a far due time is not kept, but its job is still on time', async (t) => {
  const { start, schedule, pass, lateMs, known } = setUp(t)
  await start()
  const dueAtMs = schedule(10_000)
  t.equal(known(), 0)
  await pass(10_000 + lateMsMax)
  t.ok((lateMs.get(dueAtMs) ?? dayMs) <= lateMsMax, `${lateMs.get(dueAtMs)} ms late`)
})

test('a due time is not lost between polls, whenever its notice arrives and however far ahead it is', async (t) => {
  const random = seededRandom(11)
  const { start, schedule, pass, lateMs } = setUp(t, () => 1 + random.below(roundTripMsMax))
  await start()
  const dueAts: number[] = []
  for (let i = 0; i < 300; i += 1) {
    // Due times close to one horizon of a due poll, close to two, and random ones.
    const inMs = [1_400 + random.below(200), 2_900 + random.below(200), 1 + random.below(6_000)]
    dueAts.push(schedule(inMs[i % 3] ?? 1))
    await pass(random.below(100))
  }
  await pass(6_000 + lateMsMax)
  const worst = Math.max(...dueAts.map((dueAtMs) => lateMs.get(dueAtMs) ?? dayMs))
  t.ok(worst <= lateMsMax, `the latest was ${worst} ms late`)
})

test("near due times are kept among any number of far ones, even before the database's clock is known", async (t) => {
  const { timers, schedule, pass, lateMs, known } = setUp(t)
  const started = timers.start()
  await pass(roundTripMsMax - 1)
  // The due poll in progress has read its result before these messages exist.
  for (let i = 0; i < 2 * deadlinesMax; i += 1) schedule(dayMs - i)
  const near = [100, 200, 300].map(schedule)
  t.equal(known(), deadlinesMax)
  await pass(1)
  await started
  await pass(300 + lateMsMax)
  for (const dueAtMs of near) {
    const late = lateMs.get(dueAtMs)
    t.ok(late !== undefined && late <= lateMsMax, `${late} ms late`)
  }
  t.ok(known() <= deadlinesMax)
})

test('peers get notices only for times that are due soon', async (t) => {
  const { timers, start, databaseMs } = setUp(t)
  await start()
  const soonMs = databaseMs() + 1_500
  t.equal(timers.expectDue({ atMs: soonMs }), soonMs)
  t.ok((timers.expectDue({ inMs: 1_500 }) ?? 0) >= soonMs)
  t.equal(timers.expectDue({ atMs: databaseMs() + dayMs }), undefined)
  t.equal(timers.expectDue({ inMs: dayMs }), undefined)
})
