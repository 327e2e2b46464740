// A push that delivers its message to a request that waits for it: what push and pop would do in two calls, but only
// if nothing else is deliverable from the lane.
import { randomUUID } from 'node:crypto'
import {
  ack,
  type DirectPushResult,
  enqueue,
  type NewMessage,
  push,
  pushDirect,
  release,
  setPaused,
} from '@rouse/storage'
import { test } from 'tap'
import {
  finish,
  item,
  message,
  openStorage,
  payloads,
  refusal,
  type Storage,
  start,
} from '../support/storage.ts'

const waiter = { group: 'g', holder: 'test' }

function deliver({ pool }: Storage, one: NewMessage, to = waiter): Promise<DirectPushResult> {
  return pushDirect(pool, one, { leaseId: randomUUID(), ...to }, undefined)
}

/** A queue with a partition `p`, whose group `g` has read everything. */
async function openDrained(
  t: Parameters<typeof openStorage>[0],
  options: Record<string, unknown> = {},
) {
  const storage = await openStorage(t)
  const { freezeClock, lease, pool, send, set } = storage
  await freezeClock(start)
  await set('q', options)
  await send('q', 'p', ['first'])
  await finish(pool, await lease('q'))
  return storage
}

test('a message is stored and leased in one call, and its hint excludes the group that got it', async (t) => {
  const storage = await openDrained(t)
  const sent = message('q', 'p', { n: 1 }, { traceId: 't', headers: '{"h":1}', transactionId: 'k' })
  const { items, lease, woken } = await deliver(storage, sent)
  t.match(items, [{ status: 'queued', seq: 2, partition: 'p' }])
  t.match(woken, [{ queue: 'q', partition: 'p', group: null, count: 1, except: 'g' }])
  t.match(lease, {
    queue: 'q',
    partition: 'p',
    attempt: 1,
    expiresAtMs: start + 300_000,
    messages: [
      {
        seq: 2,
        id: items[0]?.messageId,
        createdAtMs: start,
        pushedAtMs: start,
        payload: '{"n":1}',
        headers: '{"h":1}',
        traceId: 't',
        transactionId: 'k',
      },
    ],
  })
  t.match(await storage.lane(), { next: '3', ready: false, lease_id: lease?.leaseId })
  t.equal((await storage.take('q')).status, 'empty')
  const [held] = await storage.rows<{ holder: string }>('select holder from rouse.leases')
  t.equal(held?.holder, 'test')
})

test('a pop reads the same message as the direct delivery, after the lease is released', async (t) => {
  const storage = await openDrained(t)
  const sent = message('q', 'p', { n: 1 }, { traceId: 't', headers: '{"h":1}', transactionId: 'k' })
  const { lease } = await deliver(storage, sent)
  await release(storage.pool, [lease?.leaseId as string])
  const popped = await storage.lease('q')
  t.not(popped.leaseId, lease?.leaseId)
  t.same({ ...popped, leaseId: '' }, { ...lease, leaseId: '' })
})

test('the lease ends like that of a pop: by an ack, an expiry, a failure', async (t) => {
  const storage = await openDrained(t, { retryLimit: 5 })
  const { advanceClock, lane, pool, rows, take } = storage
  const { lease } = await deliver(storage, message('q', 'p', 1), { ...waiter })
  t.same((await finish(pool, lease as NonNullable<typeof lease>)).rejected, [])
  t.match(await lane(), { lease_id: null, ready: false })

  const lost = await pushDirect(
    pool,
    message('q', 'p', 2),
    { ...waiter, leaseId: randomUUID(), leaseMs: 1_000 },
    undefined,
  )
  await advanceClock(1_000)
  t.same((await finish(pool, lost.lease as NonNullable<typeof lease>)).rejected, [0], 'too late')
  await rows('select rouse.reap_step(100)')
  const again = await take('q')
  t.same(payloads(again), [2])
  t.equal(again.leases[0]?.attempt, 2)
})

test('the next message of an ordered partition waits for the lease, and of an unordered one it does not', async (t) => {
  for (const ordering of ['partition', 'none']) {
    await t.test(ordering, async (t) => {
      const storage = await openDrained(t, { ordering })
      const first = await deliver(storage, message('q', 'p', 1))
      const second = await deliver(storage, message('q', 'p', 2))
      t.ok(first.lease)
      t.equal(second.lease === undefined, ordering === 'partition')
      if (ordering === 'none') return t.same((await storage.lane()).lease_id, null)
      t.match(second.woken, [{ count: 1, except: undefined }], 'all groups get the hint')
      t.equal((await storage.take('q')).status, 'empty')
      await finish(storage.pool, first.lease as NonNullable<typeof first.lease>)
      t.same(payloads(await storage.take('q')), [2])
    })
  }
})

test('independent messages of a keyed queue are delivered at once, each under its own lease', async (t) => {
  const storage = await openStorage(t)
  await storage.set('q', { ordering: 'keyed' })
  await storage.send('q', undefined, ['first'])
  await storage.lease('q')
  const leases = await Promise.all(
    [1, 2, 3].map((n) => deliver(storage, message('q', undefined, n))),
  )
  t.equal(new Set(leases.map(({ lease }) => lease?.leaseId)).size, 3)
  t.same(
    leases.map(({ lease }) => lease?.partition),
    [null, null, null],
  )
})

test('other consumer groups get the message, too', async (t) => {
  const storage = await openDrained(t)
  const { lane, pool, take } = storage
  for (const group of ['f', 'h']) await take('q', { group, autoAck: true })
  const { lease } = await deliver(storage, message('q', 'p', 1))
  t.ok(lease)
  for (const group of ['f', 'h']) {
    t.equal((await lane('p', group)).ready, true)
    t.same(payloads(await take('q', { group })), [1], group)
  }
  await finish(pool, lease as NonNullable<typeof lease>)
  t.equal((await take('q')).status, 'empty')
})

/** What may stand in front of the message or withhold it: then it is stored, and gets no lease. */
const withheld: Readonly<Record<string, (storage: Storage) => Promise<unknown>>> = {
  'an older message is deliverable': ({ send }) => send('q', 'p', ['older']),
  'an older message is leased': async ({ send, lease }) => {
    await send('q', 'p', ['older'])
    await lease('q')
  },
  'an older message waits for its retry': async ({ pool, send, lease }) => {
    await send('q', 'p', ['older'])
    await ack(pool, [item(await lease('q'), 0, 'failed')])
  },
  'the queue is paused': ({ pool }) => setPaused(pool, 'q', true),
  'the queue has a delay': ({ set }) => set('q', { delayedProcessing: 60 }),
  'the queue has a window buffer': ({ set }) => set('q', { windowBuffer: 60 }),
  'the queue has a limit in flight': ({ set }) => set('q', { maxInFlight: 5 }),
  'the queue has a limit per partition': ({ set }) => set('q', { maxInFlightPerPartition: 5 }),
  'the queue has a rate': ({ set }) => set('q', { rate: { limit: 5, perMs: 1_000 } }),
  'the queue drops old messages': ({ set }) => set('q', { ttl: 3_600 }),
  'the queue has a maximum size': ({ set }) => set('q', { maxSize: 100 }),
  'the queue keeps its whole history': ({ set }) => set('q', { history: 'all' }),
  'messages of the queue have priorities': async ({ pool, set }) => {
    await set('q', { ordering: 'keyed' })
    await push(pool, [message('q', undefined, 'first', { priority: 5 })])
  },
  'the group was last seen more than a minute ago': ({ advanceClock }) => advanceClock(61_000),
  'the group was deleted': ({ rows }) => rows(`select rouse.delete_group('q', 'g')`),
}

for (const [what, arrange] of Object.entries(withheld)) {
  test(`a message is stored like any other if ${what}`, async (t) => {
    const storage = await openDrained(t)
    await arrange(storage)
    const { items, lease, woken } = await deliver(storage, message('q', 'p', 'new'))
    t.equal(lease, undefined)
    t.ok(items[0]?.status === 'queued' || items[0]?.status === 'scheduled')
    t.same(
      woken.map(({ except }) => except),
      woken.map(() => undefined),
    )
    const stored = await storage.rows<{ payload: string }>(
      `select payload from rouse.messages union all select payload from rouse.scheduled`,
    )
    t.equal(stored.filter(({ payload }) => payload === '"new"').length, 1)
  })
}

test('a push to a new queue or a new partition is stored without a lease', async (t) => {
  const storage = await openDrained(t)
  const later = await deliver(storage, message('later', 'p', 1))
  t.equal(later.lease, undefined)
  t.match(later.woken, [{ queue: 'later', count: 1 }])
  t.equal((await deliver(storage, message('q', 'new', 1))).lease, undefined)
  t.same(payloads(await storage.take('q')), [1])
})

test('a duplicate is not delivered again, and its answer names the original', async (t) => {
  const storage = await openDrained(t)
  const first = await deliver(storage, message('q', 'p', 1, { transactionId: 'k' }))
  await finish(storage.pool, first.lease as NonNullable<typeof first.lease>)
  const again = await deliver(storage, message('q', 'p', 1, { transactionId: 'k' }))
  t.match(again.items, [{ status: 'duplicate', messageId: first.items[0]?.messageId }])
  t.equal(again.lease, undefined)
  t.same(again.woken, [])
})

test('bad names and payloads are refused as by any push', async (t) => {
  const storage = await openDrained(t)
  for (const bad of [message('q', 'a\u0007', 1), message('a\u0007', 'p', 1), message('', 'p', 1)]) {
    const [direct, plain] = [
      await refusal(deliver(storage, bad)),
      await refusal(push(storage.pool, [bad])),
    ]
    t.same(direct, plain)
    t.equal(direct.state, 'RS400')
  }
})

test('a push during which the ordering changes leases by the new one', async (t) => {
  const storage = await openDrained(t)
  const locked = await storage.armBarrier('push-direct-locked')
  const pushed = deliver(storage, message('q', 'p', 1))
  await locked.reached()
  await storage.set('q', { ordering: 'none' })
  await locked.release()
  t.equal((await pushed).lease, undefined, 'the options were read before the change')
  t.same(payloads(await storage.take('q')), [1])
})

test('a push during which the queue is paused delivers nothing', async (t) => {
  const storage = await openDrained(t)
  const locked = await storage.armBarrier('push-direct-locked')
  const pushed = deliver(storage, message('q', 'p', 1))
  await locked.reached()
  await setPaused(storage.pool, 'q', true)
  await locked.release()
  t.equal((await pushed).lease, undefined)
})

test('a pop beside the push leases the message or the push does, never both', async (t) => {
  for (const barrier of ['push-direct-locked', 'push-direct-appended', 'push-direct-leased']) {
    const storage = await openDrained(t)
    const held = await storage.armBarrier(barrier)
    const pushed = deliver(storage, message('q', 'p', 1))
    await held.reached()
    const beside = await storage.take('q')
    await held.release()
    const { lease } = await pushed
    t.same(payloads(beside), [], barrier)
    t.ok(lease, barrier)
    t.equal((await storage.take('q')).status, 'empty')
  }
})

test('a waiter on another lane gets a message that commits while this lane is leased', async (t) => {
  const storage = await openDrained(t)
  await storage.send('q', 'other', ['x'])
  await finish(storage.pool, await storage.lease('q'))
  const held = await storage.armBarrier('push-direct-leased')
  const pushed = deliver(storage, message('q', 'p', 1))
  await held.reached()
  await storage.send('q', 'other', ['y'])
  t.same(payloads(await storage.take('q')), ['y'], 'the open push blocks no other partition')
  await held.release()
  t.ok((await pushed).lease)
})

test('a group created beside the push gets the message', async (t) => {
  const storage = await openDrained(t)
  const held = await storage.armBarrier('push-direct-leased')
  const pushed = deliver(storage, message('q', 'p', 1))
  await held.reached()
  const options = { group: 'born', autoAck: true, batch: 5 }
  const born = storage.take('q', options)
  await held.release()
  t.ok((await pushed).lease)
  const seen = [...payloads(await born), ...payloads(await storage.take('q', options))]
  t.same(seen, ['first', 1], 'at once, or with its next pop')
})

test('the lease is durable although its pop would not have been', async (t) => {
  const storage = await openDrained(t)
  const client = await storage.begin()
  await client.query(`set local synchronous_commit = off`)
  const { lease } = await pushDirect(
    { query: (statement) => client.query(statement as never) as never },
    message('q', 'p', 1),
    { ...waiter, leaseId: randomUUID() },
    undefined,
  )
  t.ok(lease)
  const { rows } = await client.query('show synchronous_commit')
  t.equal(rows[0]?.synchronous_commit, 'on')
})

test('an enqueue in SQL is promoted behind a message that was delivered directly', async (t) => {
  const storage = await openDrained(t)
  await enqueue(storage.pool, { queue: 'q', payload: '"by SQL"', partition: 'p' })
  const { lease } = await deliver(storage, message('q', 'p', 'direct'))
  t.ok(lease, 'an enqueued message is not in the log before its promotion')
})
