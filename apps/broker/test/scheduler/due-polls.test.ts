// The timers without a database: the test provides the results of due polls. A notice is not lost, whenever
// it arrives.

import type { DueTimes } from '@rouse/storage'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { systemClock } from '../../src/clock.ts'
import { createLogger } from '../../src/log.ts'
import { type JobName, Timers } from '../../src/scheduler/timers.ts'
import { pass } from '../support/node-state.ts'

const nothing = { reap: [], promote: [], cron: [], retain: [], hasWindows: false }

/** Timers on a simulated database, by default without due times. Each due poll can be delayed. */
function setUp(known: Partial<DueTimes> = {}) {
  const runs: { job: JobName; atMs: number }[] = []
  let looks = 0
  let held: Promise<void> = Promise.resolve()
  const job = (name: JobName) => ({
    async run() {
      runs.push({ job: name, atMs: Date.now() })
      return false
    },
  })
  const timers = new Timers({
    clock: systemClock,
    log: createLogger({ level: 'silent', node: 'n', process: 'p' }),
    jobs: {
      reap: job('reap'),
      promote: job('promote'),
      cron: job('cron'),
      retain: job('retain'),
    },
    async readDueTimes(horizonMs) {
      looks += 1
      const nowMs = Date.now()
      await held
      return { ...nothing, nowMs, completeUntilMs: nowMs + horizonMs, ...known }
    },
  })
  return {
    timers,
    runs,
    looks: () => looks,
    /** Delays due polls until the returned function is called. */
    hold: () => {
      let release = (): void => {}
      held = new Promise((resolve) => {
        release = resolve
      })
      return () => release()
    },
  }
}

test('a due notice runs its job at that time', async (t) => {
  const { timers, runs } = setUp()
  await timers.start()
  t.teardown(() => timers.stop())
  const dueAtMs = Date.now() + 150
  timers.expect(dueAtMs, 'cron')
  await eventually(() => runs.length > 0)
  t.same(
    runs.map(({ job }) => job),
    ['cron'],
  )
  t.ok((runs[0]?.atMs ?? 0) >= dueAtMs, 'not early')
})

test('an earlier time replaces a later one', async (t) => {
  const { timers, runs } = setUp()
  await timers.start()
  t.teardown(() => timers.stop())
  const now = Date.now()
  timers.expect(now + 1_500)
  timers.expect(now + 100)
  await eventually(() => runs.length === 1)
  t.ok((runs[0]?.atMs ?? 0) < now + 2_000)
})

test('a notice that arrives during a due poll survives its result', async (t) => {
  const { timers, runs, looks, hold } = setUp()
  await timers.start()
  t.teardown(() => timers.stop())
  const release = hold()
  timers.pollDueTimes()
  await eventually(() => looks() === 2)
  timers.expect(Date.now() + 300)
  release()
  await eventually(() => runs.length === 1)
  t.equal(runs[0]?.job, 'promote')
})

test('a due poll replaces earlier notices', async (t) => {
  const { timers, runs, looks } = setUp()
  await timers.start()
  t.teardown(() => timers.stop())
  timers.expect(Date.now() + 1_000)
  timers.pollDueTimes()
  await eventually(() => looks() >= 2)
  await eventually(() => looks() >= 4, { timeoutMs: 10_000 })
  t.same(runs, [], 'nothing is due, so no job ran')
})

test('a thousand requests for a due poll cause only a few', async (t) => {
  const { timers, looks } = setUp()
  await timers.start()
  t.teardown(() => timers.stop())
  for (let i = 0; i < 1_000; i += 1) timers.pollDueTimes()
  await eventually(() => looks() >= 2)
  t.ok(looks() <= 3, `${looks()} due polls`)
})

test('an overdue job runs at once and is polled again soon', async (t) => {
  const { timers, runs, looks } = setUp({ promote: [1] })
  const begun = performance.now()
  await timers.start()
  t.teardown(() => timers.stop())
  await eventually(() => looks() >= 3)
  t.ok(performance.now() - begun < 900, 'sooner than the next second')
  t.ok(runs.length >= 2)
})

test('stopped timers run no jobs', async (t) => {
  const { timers, runs } = setUp()
  await timers.start()
  timers.expect(Date.now() + 50)
  await timers.stop()
  await timers.stop()
  timers.run('promote', 'notify')
  await pass(100)
  t.same(runs, [])
})

test('a requested job is followed by a due poll, because it may have skipped locked rows', async (t) => {
  const { timers, runs, looks } = setUp()
  await timers.start()
  t.teardown(() => timers.stop())
  const rounds = 8
  const begun = performance.now()
  for (let round = 1; round <= rounds; round += 1) {
    const before = looks()
    if (round % 2 === 0) timers.run('reap', 'notify')
    else timers.expect(Date.now())
    await eventually(() => runs.length === round && looks() > before)
  }
  const tookMs = performance.now() - begun
  t.ok(tookMs < (rounds * 1_000) / 2, `${tookMs} ms, not a second each`)
})

test('a job started by a due poll is not followed by another one, because the poll repeats anyway', async (t) => {
  const { timers, runs, looks } = setUp({ promote: [1] })
  await timers.start()
  t.teardown(() => timers.stop())
  await eventually(() => looks() >= 5, { timeoutMs: 10_000 })
  t.ok(
    runs.length >= looks() - 1 && runs.length <= looks(),
    `${runs.length} runs, ${looks()} due polls`,
  )
})
