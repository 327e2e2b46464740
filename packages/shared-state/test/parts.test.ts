import { test } from 'tap'
import { afterEmpty, startBackoff } from '../src/backoff.ts'
import { DeadlineQueue } from '../src/deadline-queue.ts'
import { LatencyHistogram } from '../src/latency-histogram.ts'
import { sharedStateDefaults as settings } from '../src/settings.ts'
import { WakeCounters } from '../src/wake-counters.ts'
import { WorkerTurns } from '../src/worker-turns.ts'

test('the backoff grows from the third empty poll up to its maximum', async (t) => {
  let backoff = startBackoff(settings)
  const intervals = Array.from({ length: 8 }, () => {
    backoff = afterEmpty(backoff, settings)
    return backoff.intervalMs
  })
  t.same(intervals, [100, 100, 200, 400, 800, 1_000, 1_000, 1_000])
  t.equal(backoff.consecutiveEmpty, 8)
})

test('the next turn belongs to the worker whose last turn is oldest', async (t) => {
  const waiters = new WorkerTurns()
  const none = new Set<number>()
  t.equal(waiters.next(none), undefined)
  for (const id of [1, 2, 3]) waiters.set(id, 2)
  t.equal(waiters.total, 6)
  const turns = Array.from({ length: 5 }, () => {
    const id = waiters.next(none)
    if (id !== undefined) waiters.hadTurn(id)
    return id
  })
  t.same(turns, [1, 2, 3, 1, 2])
})

test('a worker that is passed over gets a turn only if there is no other', async (t) => {
  const waiters = new WorkerTurns()
  waiters.set('a', 1)
  waiters.set('b', 1)
  t.equal(waiters.next(new Set(['a'])), 'b')
  t.equal(waiters.next(new Set(['a', 'b'])), 'a')
})

test('a worker without waiters gets no turn', async (t) => {
  const waiters = new WorkerTurns()
  waiters.set(1, 3)
  waiters.set(1, 1)
  t.equal(waiters.total, 1)
  waiters.set(1, 0)
  waiters.hadTurn(1)
  t.equal(waiters.total, 0)
  t.equal(waiters.next(new Set()), undefined)
})

test('the first member added is due first, and adding it again restarts its delay', async (t) => {
  const queue = new DeadlineQueue<string>(10)
  t.equal(queue.firstDueAt(), Number.POSITIVE_INFINITY)
  queue.add('a', 0)
  queue.add('b', 2)
  queue.add('a', 5)
  queue.add('c', 6)
  t.equal(queue.firstDueAt(), 12)
  t.equal(
    queue.find(() => true),
    'b',
  )
  t.equal(
    queue.find((member) => member > 'b'),
    'c',
  )
  t.equal(
    queue.find(() => false),
    undefined,
  )
  t.same(queue.takeDue(11), [])
  t.same(queue.takeDue(15), ['b', 'a'])
  queue.delete('c')
  t.equal(queue.firstDueAt(), Number.POSITIVE_INFINITY)
})

test('wake-ups are counted by source, separately from first queries', async (t) => {
  const counters = new WakeCounters()
  counters.granted('udp')
  counters.granted('udp')
  counters.granted('request')
  t.match(counters, { wakes: { udp: 2, chain: 0 }, requests: 1 })
})

test('a histogram counts each duration in every bucket that includes it', async (t) => {
  const histogram = new LatencyHistogram()
  for (const ms of [0.4, 1, 1.1, 20_000]) histogram.record(ms)
  const { count, sumMs, maxMs, buckets } = histogram.stats()
  t.same([count, sumMs, maxMs], [4, 20_002.5, 20_000])
  t.same(buckets.slice(0, 2), [
    { leMs: 1, count: 2 },
    { leMs: 2, count: 3 },
  ])
  t.same(buckets.slice(-2), [
    { leMs: 10_000, count: 3 },
    { leMs: null, count: 4 },
  ])
})
