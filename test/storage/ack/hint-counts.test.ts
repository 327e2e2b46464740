// The count of a wake hint for a lane that an ack has freed: the messages that its group can pop from it. A
// waiter may stay asleep if the count is 0, so 0 must be certain. Undefined: not known.
import { isCompletionGroup } from '@rouse/protocol'
import { ack, type Executor, type Lease, push, setPaused } from '@rouse/storage'
import { test } from 'tap'
import { finish, item, message, openStorage, payloads } from '../support/storage.ts'

type Acks = Awaited<ReturnType<typeof ack>>

function counts({ woken }: Acks): (number | undefined)[] {
  // A failed message also wakes requests that wait for it to end.
  const ofLanes = woken.filter(({ group }) => !isCompletionGroup(group ?? ''))
  return ofLanes.map(({ count }) => count)
}

/** Acks one message by its token, in the short form or in the general one. */
const forms = {
  short: (executor: Executor, lease: Lease) => ack(executor, [item(lease)]),
  general: (executor: Executor, lease: Lease) =>
    ack(executor, [item(lease), { leaseId: lease.leaseId }]),
}

for (const [form, complete] of Object.entries(forms)) {
  test(`an ack counts what its group can pop from the lane (${form} form)`, async (t) => {
    const { lease, pool, send } = await openStorage(t)
    await send('q', 'p', [1, 2, 3])
    const first = await lease('q')
    t.same(counts(await complete(pool, first)), [2])
    const rest = await lease('q', { batch: 2 })
    await ack(pool, [item(rest)])
    t.same(counts(await ack(pool, [item(rest, 1)])), [0], 'the last message of the lane')
    await send('q', 'p', [4])
    const fourth = await lease('q')
    await send('q', 'p', [5])
    t.same(counts(await complete(pool, fourth)), [1], 'pushed during the lease')
  })

  test(`an ack does not count a lane with a redelivery (${form} form)`, async (t) => {
    const { lease, pool, send, set } = await openStorage(t)
    await set('q', { onFailure: 'skip', retryBackoffMs: [60_000] })
    await send('q', 'p', [1, 2, 3])
    const first = await lease('q')
    t.same(counts(await ack(pool, [item(first, 0, 'failed')])), [undefined])
    t.same(counts(await complete(pool, await lease('q'))), [undefined])
  })

  test(`an ack does not count a lane whose failed message is due at once (${form} form)`, async (t) => {
    const { lease, pool, send } = await openStorage(t)
    await send('q', 'p', [1, 2])
    const both = await lease('q', { batch: 2 })
    t.same(counts(await ack(pool, [item(both, 0, 'retry'), item(both, 1)])), [undefined])
    t.same(counts(await complete(pool, await lease('q'))), [0])
  })

  test(`an ack does not count a blocked lane (${form} form)`, async (t) => {
    const { lease, pool, send, set } = await openStorage(t)
    await set('q', { retryBackoffMs: [60_000] })
    await send('q', 'p', [1, 2, 3])
    const both = await lease('q', { batch: 2 })
    await ack(pool, [item(both, 1, 'failed')])
    t.same(counts(await complete(pool, both)), [undefined])
  })

  for (const options of [{ maxInFlight: 5 }, { ttl: 60 }, { maxWaitTimeSeconds: 60 }]) {
    test(`an ack does not count with ${JSON.stringify(options)} (${form} form)`, async (t) => {
      const { lease, pool, send, set } = await openStorage(t)
      await set('q', options)
      await send('q', 'p', [1, 2])
      t.same(counts(await complete(pool, await lease('q'))), [undefined])
    })
  }

  test(`an ack does not count the lane of a paused queue (${form} form)`, async (t) => {
    const { lease, pool, send } = await openStorage(t)
    await send('q', 'p', [1, 2])
    const held = await lease('q')
    await setPaused(pool, 'q', true)
    t.same(counts(await complete(pool, held)), [undefined])
  })

  test(`an ack does not count a lane that was popped during a push (${form} form)`, async (t) => {
    const { armBarrier, lease, pool, send, take } = await openStorage(t)
    await send('q', 'p', [1])
    await take('q', { group: 'other', partition: 'nowhere' })
    const pushing = await armBarrier('push-woken')
    const pushed = send('q', 'p', [2])
    await pushing.reached()
    const held = await lease('q')
    t.same(counts(await complete(pool, held)), [undefined], 'the push has not written the lane')
    await pushing.release()
    await pushed
    t.same(payloads(await take('q')), [2])
  })

  test(`a push to a lane without messages waits for the ack that frees it (${form} form)`, async (t) => {
    const { begin, lease, send, waiting } = await openStorage(t)
    await send('q', 'p', [1])
    const held = await lease('q')
    const client = await begin()
    t.same(counts(await complete(client, held)), [0])
    let isPushed = false
    const pushed = send('q', 'p', [2]).then(() => (isPushed = true))
    await waiting()
    t.equal(isPushed, false, 'its wake hint comes after the lane is free')
    await client.query('commit')
    await pushed
  })
}

test('an ack of an unordered message frees no lane and returns no hint', async (t) => {
  const { lease, pool, send, set } = await openStorage(t)
  await set('q', { ordering: 'none' })
  await send('q', 'p', [1, 2])
  t.same((await ack(pool, [item(await lease('q'))])).woken, [])
  t.same((await finish(pool, await lease('q'))).woken, [])
})

test('a message behind missing rows is counted', async (t) => {
  const { lease, pool, rows, send } = await openStorage(t)
  await push(pool, [message('q', 'p', 1)])
  await send('q', 'p', [2, 3])
  const held = await lease('q')
  await rows('delete from rouse.messages where seq = 2')
  t.same(counts(await ack(pool, [item(held)])), [2], 'including the missing row')
})
