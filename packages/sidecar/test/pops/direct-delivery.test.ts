// A push that delivers its message to a waiting pop of the same worker, and everything that may happen to either of
// them meanwhile.
import { setTimeout as delay } from 'node:timers/promises'
import { poolExecutor, pop, push } from '@rouse/storage'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import type { PopResponse, PopSpec } from '../../src/index.ts'
import { item, pushOne, spec, startSidecar } from '../support/start-sidecar.ts'

interface Waiting {
  readonly response: Promise<PopResponse>
  leave(): void
}

/** A sidecar whose queue `q` has partitions, and whose group `g` has read everything. */
async function start(t: Test, options: Parameters<typeof startSidecar>[1] = {}) {
  const started = await startSidecar(t, options)
  const { sidecar, coordinator, database } = started
  for (const partition of ['Default', 'other']) {
    await pushOne(sidecar, item('q', { partition }))
    await sidecar.submit({ kind: 'POP', pop: spec('q', { autoAck: true }) })
  }
  coordinator.outcomes.length = 0
  return {
    ...started,
    barrier: (name: string) => database.armBarrier(name),
    calls: (name: string) => sidecar.stats().queries[`rouse.${name}`] ?? 0,
    /** Resolves once the waiter is parked: its first query has ended. */
    waits: async (fields: Partial<PopSpec> = {}, waitMs = 20_000): Promise<Waiting> => {
      const client = new AbortController()
      const before = coordinator.outcomes.length
      const response = sidecar.submit({
        kind: 'POP_WAIT',
        pop: spec('q', fields),
        timeoutMs: waitMs,
        signal: client.signal,
      })
      await eventually(() => coordinator.outcomes.length > before)
      return { response, leave: () => client.abort() }
    },
    /** What another client of the database can pop. */
    left: async (): Promise<string | undefined> => {
      const demand = { batch: 1, partitions: 1, holder: 'other' }
      const { leases } = await pop(poolExecutor(database.pool), {
        source: { queue: 'q' },
        group: 'g',
        demands: [demand],
      })
      return leases[0]?.messages[0]?.payload
    },
  }
}

function payloadsOf({ leases }: PopResponse): string[] {
  return leases.flatMap(({ messages }) => messages.map(({ payload }) => payload))
}

test('the oldest waiter gets the message of a push without a pop', async (t) => {
  const { sidecar, coordinator, waits, calls } = await start(t)
  const [first, second] = [await waits(), await waits()]
  const pops = calls('pop')
  await pushOne(sidecar, item('q', { payload: '"x"' }))
  t.same(payloadsOf(await first.response), ['"x"'])
  t.equal(coordinator.waitingOf('q'), 1, 'the primary knows that one waiter is left')
  await pushOne(sidecar, item('q', { payload: '"y"', partition: 'other' }))
  t.same(payloadsOf(await second.response), ['"y"'])
  t.equal(calls('pop'), pops)
  t.equal(calls('push_direct'), 2)
})

test('a waiter of one partition gets only messages of that partition', async (t) => {
  const { sidecar, waits } = await start(t)
  const waiting = await waits({ source: { queue: 'q', partition: 'other' } })
  await pushOne(sidecar, item('q', { payload: '"default"' }))
  await pushOne(sidecar, item('q', { payload: '"other"', partition: 'other' }))
  t.same(payloadsOf(await waiting.response), ['"other"'])
})

test('each consumer group gets the message, one directly and the others by their pops', async (t) => {
  const { sidecar, waits, calls } = await start(t)
  for (const group of ['h', 'i']) {
    await sidecar.submit({
      kind: 'POP',
      pop: spec('q', { group, autoAck: true, batch: 5, partitions: 2 }),
    })
  }
  const all = await Promise.all(['g', 'h', 'i'].map((group) => waits({ group })))
  await pushOne(sidecar, item('q', { payload: '"x"' }))
  for (const { response } of all) t.same(payloadsOf(await response), ['"x"'])
  t.equal(calls('push_direct'), 1)
})

test('waiters that acknowledge on delivery, or want a lease per message, get messages by a pop', async (t) => {
  const { sidecar, waits, calls } = await start(t)
  for (const fields of [{ autoAck: true }, { leasePerMessage: true }]) {
    const waiting = await waits(fields)
    await pushOne(sidecar, item('q', { payload: '"x"', partition: 'other' }))
    t.same(payloadsOf(await waiting.response), ['"x"'])
    const { leases } = await waiting.response
    await sidecar
      .submit({ kind: 'ACK', item: { leaseId: leases[0]?.leaseId as string } })
      .catch(() => {})
  }
  t.equal(calls('push_direct'), 0)
})

test('several messages, or one with a delay or options, are not delivered directly', async (t) => {
  const { sidecar, waits, calls } = await start(t)
  const waiting = await waits({ batch: 10 })
  await pushOne(sidecar, item('q', { delayMs: 60_000 }))
  await pushOne(sidecar, item('q', { options: { ttlMs: 60_000 }, payload: '1' }))
  t.same(payloadsOf(await waiting.response), ['1'])
  const again = await waits({ batch: 10, partitions: 2 })
  await sidecar.submit({
    kind: 'PUSH',
    items: [item('q', { partition: 'other' }), item('q', { partition: 'other' })],
    bytes: 10,
  })
  t.equal(payloadsOf(await again.response).length, 2)
  t.equal(calls('push_direct'), 0)
})

for (const name of ['push-direct-locked', 'push-direct-appended', 'push-direct-leased']) {
  test(`if its client disconnects during the push, the message goes back: ${name}`, async (t) => {
    const { sidecar, waits, barrier, left } = await start(t)
    const waiting = await waits()
    const reached = await barrier(name)
    const pushed = pushOne(sidecar, item('q', { payload: '"x"' }))
    await reached.reached()
    waiting.leave()
    t.same(payloadsOf(await waiting.response), [])
    await reached.release()
    await pushed
    t.equal(await eventually(left), '"x"')
  })

  test(`if its time ends during the push, the message goes back: ${name}`, async (t) => {
    const { sidecar, waits, barrier, left } = await start(t)
    const reached = await barrier(name)
    const waiting = await waits({}, 500)
    const pushed = pushOne(sidecar, item('q', { payload: '"x"' }))
    await reached.reached()
    t.same(payloadsOf(await waiting.response), [])
    await reached.release()
    await pushed
    t.equal(await eventually(left), '"x"')
  })

  test(`a grant that arrives during the push is answered as contended, and loses nothing: ${name}`, async (t) => {
    const { sidecar, coordinator, database, waits, barrier } = await start(t)
    const waiting = await waits()
    const reached = await barrier(name)
    const pushed = pushOne(sidecar, item('q', { payload: '"x"' }))
    await reached.reached()
    await pop(poolExecutor(database.pool), {
      source: { queue: 'q', partition: 'other' },
      group: 'g',
      demands: [{ batch: 1, partitions: 1, holder: 'other' }],
    })
    coordinator.requestGrant({ source: { queue: 'q' }, group: 'g' })
    await eventually(() => coordinator.outcomes.includes('contended'))
    t.notOk(coordinator.outcomes.includes('unused'), 'the primary must not forget the waiter')
    await reached.release()
    await pushed
    t.same(payloadsOf(await waiting.response), ['"x"'])
  })

  test(`a worker that drains during the push gives the message back: ${name}`, async (t) => {
    const { sidecar, waits, barrier, left } = await start(t)
    const waiting = await waits()
    const reached = await barrier(name)
    const pushed = pushOne(sidecar, item('q', { payload: '"x"' }))
    await reached.reached()
    const drained = sidecar.drain()
    t.equal((await waiting.response).draining, true)
    await reached.release()
    await Promise.all([pushed, drained])
    t.equal(await left(), '"x"', 'the drain has waited for the release')
  })

  test(`if the connection breaks during the push, the waiter still gets the next message: ${name}`, async (t) => {
    const { sidecar, coordinator, database, waits, barrier } = await start(t)
    const waiting = await waits()
    const reached = await barrier(name)
    const pushed = pushOne(sidecar, item('q', { payload: '"lost"' })).catch(
      (error: unknown) => error,
    )
    await reached.reached()
    await database.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and query like '%push_direct%' and pid <> pg_backend_pid()`,
    )
    t.match(await pushed, { code: 'outcome_unknown' })
    t.equal(coordinator.unknownOutcomes, 1)
    await reached.release()
    await eventually(() =>
      pushOne(sidecar, item('q', { payload: '"next"' })).then(
        () => true,
        () => false,
      ),
    )
    t.same(payloadsOf(await waiting.response), ['"next"'])
  })
}

test('a refused push gives its waiter back', async (t) => {
  const { sidecar, waits } = await start(t)
  const waiting = await waits()
  await t.rejects(pushOne(sidecar, item('q', { partition: 'bad\u0007name' })), { code: 'refused' })
  await pushOne(sidecar, item('q', { payload: '"x"' }))
  t.same(payloadsOf(await waiting.response), ['"x"'])
})

test('a push that waits for a lock keeps its waiter from messages of other partitions for a moment only', async (t) => {
  const { sidecar, database, waits } = await start(t)
  const waiting = await waits()
  const client = await database.pool.connect()
  t.teardown(() => client.release(true))
  await client.query('begin')
  await client.query(`select from rouse.partitions where name = 'Default' for update`)
  const pushed = pushOne(sidecar, item('q', { payload: '"late"' }))
  await eventually(() => sidecar.stats().queries['rouse.push_direct'] === 1)
  await pushOne(sidecar, item('q', { payload: '"x"', partition: 'other' }))
  t.same(payloadsOf(await waiting.response), ['"x"'])
  await client.query('commit')
  await pushed
})

test('many pushes to many waiters deliver each message once', async (t) => {
  const { sidecar, waits, calls } = await start(t)
  const all = [await waits(), await waits(), await waits(), await waits()]
  const received: string[] = []
  const consumers = all.map(async (first) => {
    let response = await first.response
    for (;;) {
      for (const { leaseId } of response.leases) {
        received.push(...payloadsOf(response))
        await sidecar.submit({ kind: 'ACK', item: { leaseId } })
      }
      if (received.length >= 200) return
      response = await sidecar.submit({
        kind: 'POP_WAIT',
        pop: spec('q'),
        timeoutMs: 1_000,
        signal: new AbortController().signal,
      })
    }
  })
  for (let n = 0; n < 200; n += 1) {
    await pushOne(
      sidecar,
      item('q', { payload: `${n}`, partition: n % 3 === 0 ? 'other' : 'Default' }),
    )
  }
  await Promise.all(consumers)
  t.same(
    received.map(Number).toSorted((a, b) => a - b),
    Array.from({ length: 200 }, (_, n) => n),
  )
  t.ok(calls('push_direct') > 0, `${calls('push_direct')} pushes tried a direct delivery`)
})

test('a consumer is not starved by producers that push one message after the other', async (t) => {
  const { sidecar, coordinator, database } = await start(t)
  // No message of this queue can be delivered directly. Each commit takes some milliseconds.
  await database.pool.query(`update rouse.queues set ttl_ms = 3600000, version = version + 1`)
  await database.pool.query(`create function rouse.slow() returns trigger language plpgsql as
    $$ begin perform pg_sleep(0.003); return new; end $$`)
  await database.pool.query(
    'create trigger slow before insert on rouse.messages for each row execute function rouse.slow()',
  )
  // As by IPC: grants do not arrive at once, and a contended group is granted again after some milliseconds.
  const { onGrant } = coordinator
  coordinator.onGrant = (grant) => void setTimeout(() => onGrant(grant), 0)
  const release = coordinator.releaseGroup.bind(coordinator)
  coordinator.releaseGroup = (grant, outcome) =>
    void setTimeout(() => release(grant, outcome), outcome === 'contended' ? 5 : 0)
  let isOver = false
  const producers = [1, 2].map(async (n) => {
    while (!isOver) {
      await pushOne(sidecar, item('q', { payload: `${n}` }))
      await delay(1)
    }
  })
  for (let n = 0; n < 10; n += 1) {
    const { leases } = await sidecar.submit({
      kind: 'POP_WAIT',
      pop: spec('q'),
      timeoutMs: 1_000,
      signal: new AbortController().signal,
    })
    t.equal(leases.length, 1, `pop ${n}`)
    if (leases.length === 0) continue
    await sidecar.submit({ kind: 'ACK', item: { leaseId: leases[0]?.leaseId as string } })
  }
  isOver = true
  await Promise.all(producers)
  const { queries } = sidecar.stats()
  const direct = queries['rouse.push_direct'] ?? 0
  t.ok(direct < (queries['rouse.push_v2'] ?? 0) / 2, `${direct} pushes tried in vain`)
})

test('a waiter whose push takes long gets other messages meanwhile', async (t) => {
  const { sidecar, coordinator, database, waits, barrier, left } = await start(t)
  const waiting = await waits()
  const reached = await barrier('push-direct-leased')
  const pushed = pushOne(sidecar, item('q', { payload: '"slow"' }))
  await reached.reached()
  await push(poolExecutor(database.pool), [item('q', { payload: '"other"', partition: 'other' })])
  coordinator.requestGrant({ source: { queue: 'q' }, group: 'g' })
  t.same(payloadsOf(await waiting.response), ['"other"'])
  await reached.release()
  await pushed
  t.equal(await eventually(left), '"slow"')
})

test('a lease that has used up half of its time before the commit is not delivered', async (t) => {
  const { sidecar, waits, barrier } = await start(t)
  const leaseMs = 1_000
  const waiting = await waits({ leaseMs })
  const reached = await barrier('push-direct-leased')
  const startedMs = performance.now()
  const pushed = pushOne(sidecar, item('q', { payload: '"x"' }))
  await reached.reached()
  await eventually(() => performance.now() - startedMs > leaseMs * 0.6)
  await reached.release()
  await pushed
  const { leases } = await waiting.response
  t.match(leases, [{ attempt: 1, messages: [{ payload: '"x"' }] }])
  const leftMs = (leases[0]?.expiresAtMs ?? 0) - Date.now()
  t.ok(leftMs > leaseMs / 2, `a pop delivered it with ${leftMs} ms left`)
})

test('a message whose push was stored, but not answered, is delivered before its lease expires', async (t) => {
  let isLost = false
  const { sidecar, coordinator, waits } = await start(t, {
    lose: (statement) => {
      if (isLost || statement !== 'rouse.push_direct') return false
      isLost = true
      return true
    },
  })
  const waiting = await waits()
  await t.rejects(pushOne(sidecar, item('q', { payload: '"x"' })), { code: 'outcome_unknown' })
  t.equal(coordinator.unknownOutcomes, 1)
  const { leases } = await waiting.response
  t.match(leases, [{ attempt: 1, messages: [{ payload: '"x"' }] }])
})
