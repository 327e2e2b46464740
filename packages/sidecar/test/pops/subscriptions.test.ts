import { poolExecutor } from '@rouse/storage'
import { testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { type Waiter, WaitingRequests } from '../../src/pops/waiting-requests.ts'
import { spec } from '../support/start-sidecar.ts'

function newSubscriber(): Waiter {
  return {
    spec: spec('orders', { subscription: 'new' }),
    waits: true,
    settled: false,
    inFlight: false,
    sinceMs: 0,
    resolve: () => {},
    reject: () => {},
  }
}

test('a `new` subscription starts at the derived time only if the last result is recent', async (t) => {
  const database = await testDatabase(t)
  const clock = { nowMs: 5_000 }
  const requests = new WaitingRequests({
    executor: poolExecutor(database.pool),
    durable: true,
    bytesMax: 1_000_000,
    random: () => 0.5,
    nowMs: () => clock.nowMs,
    onBlocked: () => {},
    release: () => {},
  })
  const first = newSubscriber()
  const { description } = requests.add(first)
  t.notOk(requests.beginSubscription(first), 'no result yet')
  await requests.popFor(description)
  const { fromMs } = first.spec.subscription as { fromMs: number }

  clock.nowMs += 30_000
  const second = newSubscriber()
  t.ok(requests.beginSubscription(second))
  t.same(second.spec.subscription, { fromMs: fromMs + 30_000 })

  clock.nowMs += 1
  const third = newSubscriber()
  t.notOk(requests.beginSubscription(third))
  t.equal(third.spec.subscription, 'new', 'its first query is the start')
})
