import { setMaxListeners } from 'node:events'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { type PopResponse, SidecarError } from '../src/index.ts'
import { item, pushOne, spec, startSidecar } from './support/start-sidecar.ts'

const never = new AbortController().signal
setMaxListeners(0, never)

test('one bad item among a hundred concurrent pushes fails alone', async (t) => {
  const { sidecar } = await startSidecar(t)
  const pushes = Array.from({ length: 100 }, (_, i) =>
    pushOne(sidecar, item(i === 57 ? 'bad\u0007name' : 'orders', { partition: `p${i % 7}` })),
  )
  const results = await Promise.allSettled(pushes)
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 99)
  const failed = results[57]
  t.match(failed, { status: 'rejected', reason: { code: 'refused', state: 'RS400' } })
  t.equal((await sidecar.submit({ kind: 'POP', pop: spec('orders') })).leases.length, 1)
})

test('a bad item is reported by its index in its own request', async (t) => {
  const { sidecar } = await startSidecar(t)
  const items = [
    item('orders'),
    item('orders', { partition: 'b' }),
    item('orders', { partition: '..' }),
  ]
  const error = await sidecar.submit({ kind: 'PUSH', items, bytes: 10 }).catch((e: unknown) => e)
  t.ok(error instanceof SidecarError)
  t.match(error, { detail: { code: 'invalid_name', field: 'partition', item: 3 } })
})

test('a pop sees the push that precedes it', async (t) => {
  const { sidecar } = await startSidecar(t)
  for (let i = 0; i < 50; i += 1) {
    await pushOne(sidecar, item('orders', { partition: `p${i % 5}` }))
    const { leases } = await sidecar.submit({ kind: 'POP', pop: spec('orders') })
    t.equal(leases[0]?.messages.length, 1)
    await sidecar.submit({ kind: 'ACK', item: { leaseId: leases[0]?.leaseId as string } })
  }
})

test('the first push to a new queue answers a pop that already waits for it', async (t) => {
  const { sidecar } = await startSidecar(t)
  const waiting = sidecar.submit({
    kind: 'POP_WAIT',
    pop: spec('later'),
    timeoutMs: 10_000,
    signal: never,
  })
  await pushOne(sidecar, item('later'))
  t.equal((await waiting).leases[0]?.messages[0]?.payload, '{"n":1}')
})

test('a `new` subscriber that waits for a queue before it exists gets its first message', async (t) => {
  const { sidecar, coordinator } = await startSidecar(t)
  const pop = spec('later', { subscription: 'new' })
  const waiting = sidecar.submit({ kind: 'POP_WAIT', pop, timeoutMs: 10_000, signal: never })
  await eventually(() => coordinator.outcomes.includes('empty'))
  await pushOne(sidecar, item('later'))
  t.equal((await waiting).leases.length, 1)
})

test('a hundred waiters of one queue cost one query', async (t) => {
  const { sidecar, coordinator } = await startSidecar(t)
  const waiting = Array.from({ length: 100 }, () =>
    sidecar.submit({ kind: 'POP_WAIT', pop: spec('orders'), timeoutMs: 20_000, signal: never }),
  )
  await eventually(() => coordinator.outcomes.length >= 1)
  const before = sidecar.stats().queries['rouse.pop'] ?? 0
  t.ok(before <= 2, `${before} queries until all were registered`)
  const items = Array.from({ length: 100 }, (_, i) => item('orders', { partition: `p${i}` }))
  await sidecar.submit({ kind: 'PUSH', items, bytes: 700 })
  const outcomes = await Promise.all(waiting)
  t.ok(outcomes.every(({ leases }) => leases.length === 1 && leases[0]?.messages.length === 1))
  const spent = (sidecar.stats().queries['rouse.pop'] ?? 0) - before
  t.ok(spent <= 3, `${spent} queries answered them all`)
})

test('a waiter that finds nothing is answered at its deadline', async (t) => {
  const { sidecar, coordinator } = await startSidecar(t)
  const begun = performance.now()
  const outcome = await sidecar.submit({
    kind: 'POP_WAIT',
    pop: spec('orders'),
    timeoutMs: 200,
    signal: never,
  })
  const tookMs = performance.now() - begun
  t.same(outcome, { leases: [], paused: false, draining: false })
  t.ok(tookMs >= 199 && tookMs < 400, `${tookMs} ms`)
  t.equal(coordinator.waitingOf('orders'), 0, 'the primary knows of no waiters')
})

test('the lease of a client that disconnects during the pop is released at once', async (t) => {
  const { sidecar, database } = await startSidecar(t)
  await pushOne(sidecar, item('orders'))
  await sidecar.submit({ kind: 'POP', pop: spec('orders', { group: 'other' }) })
  const barrier = await database.armBarrier('pop-locked')
  const client = new AbortController()
  const waiting = sidecar.submit({
    kind: 'POP_WAIT',
    pop: spec('orders'),
    timeoutMs: 10_000,
    signal: client.signal,
  })
  await barrier.reached()
  client.abort()
  t.same((await waiting).leases, [])
  await barrier.release()
  const again = await eventually(async () => {
    const { leases } = await sidecar.submit({ kind: 'POP', pop: spec('orders') })
    return leases[0]
  })
  t.match(again, { attempt: 1, messages: [{ seq: 1 }] })
})

test('a worker with too many waiters refuses one more', async (t) => {
  const { sidecar } = await startSidecar(t, { waitersMax: 2 })
  const client = new AbortController()
  const wait = (): Promise<PopResponse> =>
    sidecar.submit({
      kind: 'POP_WAIT',
      pop: spec('orders'),
      timeoutMs: 9_000,
      signal: client.signal,
    })
  const waiting = [wait(), wait()]
  await t.rejects(wait(), { code: 'overloaded' })
  client.abort()
  await Promise.all(waiting)
})

test('a drain answers all waiters and asks them to reconnect', async (t) => {
  const { sidecar } = await startSidecar(t)
  const waiting = Array.from({ length: 20 }, (_, i) =>
    sidecar.submit({ kind: 'POP_WAIT', pop: spec(`q${i % 4}`), timeoutMs: 60_000, signal: never }),
  )
  await sidecar.drain()
  for (const outcome of await Promise.all(waiting)) t.match(outcome, { leases: [], draining: true })
})

test('waiters survive the loss of every connection', async (t) => {
  const { sidecar, database } = await startSidecar(t)
  await pushOne(sidecar, item('other'))
  const waiting = sidecar.submit({
    kind: 'POP_WAIT',
    pop: spec('orders'),
    timeoutMs: 30_000,
    signal: never,
  })
  await database.pool
    .query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()',
    )
    .catch(() => {}) // the query also terminates its own connection
  await eventually(async () => {
    await pushOne(sidecar, item('orders'))
    return true
  })
  t.equal((await waiting).leases.length, 1)
})

test('acks of one lease that arrive together share a call', async (t) => {
  const { sidecar } = await startSidecar(t)
  const items = Array.from({ length: 10 }, () => item('orders'))
  await sidecar.submit({ kind: 'PUSH', items, bytes: 100 })
  const { leases } = await sidecar.submit({ kind: 'POP', pop: spec('orders', { batch: 10 }) })
  const lease = leases[0] as NonNullable<(typeof leases)[0]>
  const acks = lease.messages.map(({ seq }) =>
    sidecar.submit({
      kind: 'ACK',
      item: { leaseId: lease.leaseId, message: { partitionId: lease.partitionId, seq } },
    }),
  )
  t.ok((await Promise.all(acks)).every(({ accepted }) => accepted))
  const { calls, requests } = sidecar.stats().batches['ack'] as { calls: number; requests: number }
  t.equal(requests, 10)
  t.ok(calls <= 3, `${calls} calls`)
  const stale = await sidecar.submit({ kind: 'ACK', item: { leaseId: lease.leaseId } })
  t.match(stale, { accepted: false })
})

test('a transaction with a stale lease changes nothing', async (t) => {
  const { sidecar } = await startSidecar(t)
  const stale = sidecar.submit({
    kind: 'TRANSACTION',
    transaction: {
      acks: [{ leaseId: '00000000-0000-4000-8000-000000000000' }],
      pushes: [item('next')],
    },
  })
  await t.rejects(stale, { code: 'refused', state: 'RS409' })
  t.same((await sidecar.submit({ kind: 'POP', pop: spec('next') })).leases, [])
})

test('a stuck partition delays only its own pushes', async (t) => {
  const { sidecar, database } = await startSidecar(t)
  await pushOne(sidecar, item('orders', { partition: 'stuck' }))
  await pushOne(sidecar, item('orders', { partition: 'free' }))
  const holder = await database.pool.connect()
  await holder.query('begin')
  await holder.query(`select from rouse.partitions where name = 'stuck' for update`)
  const stuck = pushOne(sidecar, item('orders', { partition: 'stuck' }))
  const free = Array.from({ length: 20 }, () =>
    pushOne(sidecar, item('orders', { partition: 'free' })),
  )
  await Promise.all(free)
  await holder.query('commit')
  holder.release()
  await stuck
  t.pass('all were pushed')
})
