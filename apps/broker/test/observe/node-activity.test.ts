import { test } from 'tap'
import { NodeActivity } from '../../src/observe/node-activity.ts'
import { add, type CountedField, noCounts } from '../../src/observe/queue-counts.ts'

function start(nowMs = 1_000_000) {
  const clock = { nowMs }
  const activity = new NodeActivity({
    nowMs: () => clock.nowMs,
    wallMs: () => clock.nowMs,
    namedQueuesMax: 100,
  })
  const count = (queue: string, field: CountedField, times: number): void => {
    const counts = noCounts()
    add(counts, field, times)
    activity.add({ queues: [[queue, counts]], releasedLeases: 0, histograms: [], traces: [] })
  }
  return { clock, activity, count }
}

test('a steady rate looks steady at every moment', (t) => {
  const { clock, activity, count } = start()
  const seen = new Set<number>()
  for (let ms = 0; ms < 20_000; ms += 50) {
    // Three workers report once a second, up to 200 ms late. One of them also reports in between, when asked.
    if (ms % 1_000 === 50) count('a', 'pushed', 20)
    if (ms % 1_000 === 200) count('a', 'pushed', 40)
    if (ms % 1_000 === 600) count('a', 'pushed', 6)
    if (ms % 1_000 === 0) count('a', 'pushed', 4)
    if (ms > 13_000) seen.add(activity.rates()[0]?.pushedPerSecond ?? 0)
    clock.nowMs += 50
  }
  t.same([...seen], [70])
  t.end()
})

test('a burst shows within two seconds, counts for ten, and then no longer', (t) => {
  const { clock, activity, count } = start()
  clock.nowMs += 10
  count('a', 'pushed', 100)
  count('a', 'completed', 30)
  clock.nowMs += 1_250
  t.match(activity.rates(), [{ queue: 'a', pushedPerSecond: 10, completedPerSecond: 3 }])
  clock.nowMs += 8_900
  t.match(activity.rates(), [{ pushedPerSecond: 10 }])
  clock.nowMs += 1_100
  t.same(activity.rates(), [], 'queues without a rate are left out')
  clock.nowMs += 3_600_000
  t.same(activity.rates(), [])
  count('a', 'pushed', 10)
  clock.nowMs += 1_000
  t.match(activity.rates(), [{ pushedPerSecond: 1 }], 'nothing of the past is left')
  t.end()
})

test('hints of messages that entered a queue are counted, others are not', (t) => {
  const { clock, activity } = start()
  activity.entered([
    { queue: 'a', count: 20 },
    { queue: 'a', count: 10 },
    { queue: 'b' },
    { queue: 'c', count: 0 },
  ])
  clock.nowMs += 1_000
  t.match(activity.rates(), [{ queue: 'a', pushedPerSecond: 3, completedPerSecond: 0 }])
  t.end()
})

test('the number of queues is limited: those that were idle for longest are dropped', (t) => {
  const { clock, activity, count } = start()
  for (let i = 0; i < 20_000; i += 1) count(`q${i}`, 'pushed', 10)
  count('q0', 'pushed', 10)
  count('new', 'pushed', 10)
  clock.nowMs += 1_000
  const names = new Set(activity.rates().map(({ queue }) => queue))
  t.equal(names.size, 20_000)
  t.ok(names.has('q0') && names.has('new'))
  t.notOk(names.has('q1'))
  t.end()
})
