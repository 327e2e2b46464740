import { test } from 'tap'
import { sharedStateDefaults as settings } from '../src/settings.ts'
import { afterEmpty, startBackoff, WorkerTurns } from '../src/wait-group.ts'

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
