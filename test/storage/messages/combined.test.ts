// Cancelling, dead-letter queues and limits together: each keeps its promise beside the others.
import {
  ack,
  cancelMessage,
  promoteDue,
  purge,
  push,
  reapExpired,
  runNow,
  setPaused,
} from '@rouse/storage'
import { type Test, test } from 'tap'
import { newId } from '../support/new-id.ts'
import { finish, item, message, openStorage, payloads, start } from '../support/storage.ts'

async function opened(t: Test, options: Record<string, unknown>) {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  await storage.set('q', options)
  const add = async (partition: string | undefined, ...values: readonly unknown[]) => {
    const items = values.map((value) => message('q', partition, value, { id: newId() }))
    return (await push(storage.pool, items)).items.map(({ messageId }) => messageId)
  }
  return {
    ...storage,
    add,
    cancel: (id: string | undefined) => cancelMessage(storage.pool, id ?? ''),
  }
}

test('a cancelled message uses no token of the rate', async (t) => {
  const { add, cancel, take } = await opened(t, { rate: { limit: 2, perMs: 60_000 } })
  const ids = await add('p', 1, 2, 3, 4, 5)
  for (const id of ids.slice(0, 2)) t.match(await cancel(id), { outcome: 'cancelled' })
  t.same(payloads(await take('q', { batch: 10 })), [3, 4])
  t.match(await take('q', { batch: 10 }), { leases: [] })
})

test('a cancelled retry opens a full lane, which the next pop closes again', async (t) => {
  const options = { ordering: 'none', onFailure: 'skip', maxInFlightPerPartition: 2 }
  const { add, advanceClock, cancel, lane, pool, take } = await opened(t, {
    ...options,
    retryBackoffMs: [60_000],
  })
  const ids = await add('p', 1, 2, 3, 4)
  const first = await take('q')
  await ack(pool, [item(first.leases[0] as (typeof first.leases)[number], 0, 'failed')])
  const held = [...(await take('q')).leases, ...(await take('q')).leases]
  t.equal(held.length, 2)
  t.match(await take('q'), { leases: [] })
  t.match(await cancel(ids[0]), { outcome: 'cancelled' })
  t.match(await take('q'), { leases: [] }, 'two are held, as before')
  await finish(pool, held[0] as (typeof held)[number])
  t.same(payloads(await take('q')), [4])
  await advanceClock(120_000)
  await promoteDue(pool)
  t.match(await take('q'), { leases: [] }, 'the cancelled one does not come')
  t.match(await lane(), { lease_id: null })
})

test('a message that a rate holds back can be cancelled and run now', async (t) => {
  const { add, advanceClock, cancel, pool, take } = await opened(t, {
    rate: { limit: 1, perMs: 60_000 },
    ordering: 'none',
  })
  const ids = await add('p', 1, 2, 3)
  t.same(payloads(await take('q', { batch: 5 })), [1])
  t.match(await runNow(pool, ids[1] as string), { outcome: 'not_scheduled' })
  t.match(await cancel(ids[1]), { outcome: 'cancelled' })
  await advanceClock(60_000)
  await promoteDue(pool)
  t.same(payloads(await take('q', { batch: 5 })), [3])
})

test('a rate counts independent and keyed messages together', async (t) => {
  const { add, take } = await opened(t, { rate: { limit: 3, perMs: 60_000 } })
  await add(undefined, 'i1', 'i2')
  await add('k', 'k1', 'k2', 'k3')
  const came: unknown[] = []
  for (let i = 0; i < 6; i += 1) came.push(...payloads(await take('q', { partitions: 5 })))
  t.equal(came.length, 3)
  t.ok(came.includes('i1') || came.includes('k1'))
  t.notOk(came.includes('k2'), 'an ordered partition has one lease at a time')
})

test('a dead letter reaches a paused queue, and is delivered after the pause', async (t) => {
  const { add, lease, pool, set, take } = await opened(t, { deadLetterTo: 'graveyard' })
  await set('graveyard', {})
  await setPaused(pool, 'graveyard', true)
  await add('p', 1)
  await ack(pool, [item(await lease('q'), 0, 'dlq')])
  await promoteDue(pool)
  t.match(await take('graveyard'), { leases: [] })
  await setPaused(pool, 'graveyard', false)
  t.same(payloads(await take('graveyard')), [1])
})

test('a purge of the source leaves a dead letter on its way, one of the target removes it', async (t) => {
  for (const [purged, expected] of [
    ['q', [1]],
    ['graveyard', []],
  ] as const) {
    const { add, lease, pool, set, take } = await opened(t, { deadLetterTo: 'graveyard' })
    await set('graveyard', {})
    await add('p', 1)
    await ack(pool, [item(await lease('q'), 0, 'dlq')])
    await purge(pool, purged)
    await promoteDue(pool)
    t.same(payloads(await take('graveyard')), expected, `a purge of ${purged}`)
  }
})

test('an expired lease of a full lane frees the place for the others', async (t) => {
  const options = { ordering: 'none', maxInFlightPerPartition: 1, onFailure: 'skip' }
  const { add, advanceClock, pool, take } = await opened(t, {
    ...options,
    retryBackoffMs: [60_000],
  })
  await add('p', 1, 2)
  t.same(payloads(await take('q', { leaseMs: 1_000 })), [1], 'its node leaves')
  t.match(await take('q'), { leases: [] })
  await advanceClock(2_000)
  await reapExpired(pool)
  t.equal(payloads(await take('q')).length, 1)
  t.match(await take('q'), { leases: [] })
})
