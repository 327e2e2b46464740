// Rule 3 of docs/storage.md: locks are taken in one order, so that no mix of calls can deadlock. PostgreSQL
// ends a deadlock after a second, with SQLSTATE 40P01. None of these calls may fail with it.
import {
  ack,
  type Lease,
  type NewMessage,
  type PopResult,
  pop,
  promoteDue,
  push,
  reapExpired,
  release,
  transaction,
} from '@rouse/storage'
import { eventually, type Random, seededRandom } from '@rouse/testkit'
import { test } from 'tap'
import { untilNoRetry } from '../support/load.ts'
import {
  demand,
  item,
  message,
  openStorage,
  payloads,
  refusal,
  type Storage,
} from '../support/storage.ts'

test('two pushes that name the same partitions in opposite order run one after the other, without a deadlock', async (t) => {
  const { armBarrier, pool, take, waiting } = await openStorage(t)
  const items = (text: string) => ['a', 'b'].map((partition) => message('q', partition, text))
  await push(pool, items('old'))
  const first = await armBarrier('push-general-locked')
  const pushes = [push(pool, items('one')), push(pool, items('two').toReversed())]
  await first.reached(1)
  await waiting(1)
  await first.release()
  await Promise.all(pushes)
  const { leases } = await take('q', { batch: 9, partitions: 2 })
  t.equal(payloads({ leases }).length, 6)
})

test('two transactions that each push to what the other acknowledges do not deadlock', async (t) => {
  const { armBarrier, lease, pool, send, waiting } = await openStorage(t)
  await send('q', 'ping', [1])
  await send('q', 'pong', [1])
  // Both lanes are drained and leased. Neither is ready, so each push has to write the lane that the other
  // transaction has locked.
  const ping = await lease('q', { partition: 'ping' })
  const pong = await lease('q', { partition: 'pong' })
  const acked = await armBarrier('transaction-acked')
  const calls = [
    transaction(pool, { acks: [item(ping)], pushes: [message('q', 'pong', 2)] }),
    transaction(pool, { acks: [item(pong)], pushes: [message('q', 'ping', 2)] }),
  ]
  await acked.reached(1)
  await Promise.race([acked.reached(2), waiting(1)])
  await acked.release()
  t.equal((await Promise.all(calls)).length, 2)
})

test('two pushes that each create a partition of a queue with a size limit do not deadlock', async (t) => {
  const { armBarrier, send, set, waiting } = await openStorage(t)
  await set('q', { maxSize: 100 })
  const created = await armBarrier('create-queues-locked')
  const pushes = [send('q', 'a', [1]), send('q', 'b', [1])]
  await created.reached(1)
  await Promise.race([created.reached(2), waiting(1)])
  await created.release()
  t.equal((await Promise.all(pushes)).length, 2)
})

test('a pop of a namespace that creates a group does not deadlock with a push that creates a partition', async (t) => {
  const { armBarrier, pool, rows, send, take, waiting } = await openStorage(t)
  await send('first', 'p', ['x'])
  await take('first', { autoAck: true })
  await send('second', 'p', ['y'])
  await rows(
    `update rouse.queues set namespace = 'n', priority = case name when 'first' then 1 else 0 end`,
  )
  // Make the drained lane ready: the pop then settles it and for that locks its partition.
  await rows('update rouse.lanes set ready = true')
  const created = await armBarrier('create-queues-locked')
  const pushing = push(pool, [message('first', 'p', 'x2'), message('second', 'born', 'y2')])
  await created.reached()
  const popping = pop(pool, {
    source: { namespace: 'n' },
    group: 'g',
    demands: [demand({ batch: 9 })],
  })
  await waiting(1)
  await created.release()
  const [{ status }] = await Promise.all([popping, pushing])
  t.equal(status, 'messages')
})

test('a pop that would have to wait while it holds lanes fails soon and leases nothing', async (t) => {
  const { begin, send, take } = await openStorage(t)
  await send('q', 'p', [1, 2])
  t.same(payloads(await take('q', { autoAck: true })), [1])
  const other = await begin()
  await other.query('lock table rouse.leases in share mode')
  t.equal((await refusal(take('q'))).state, '55P03')
  await other.query('commit')
  t.same(payloads(await take('q')), [2])
})

for (const { what, options, subscribed, row } of [
  {
    what: 'counts what a limited group has in flight',
    options: { maxInFlight: 9 },
    subscribed: true,
    row: 'select from rouse.groups for update',
  },
  {
    what: 'creates the group',
    options: {},
    subscribed: false,
    row: 'select from rouse.queues for update',
  },
]) {
  test(`a pop that meets locked lanes fails soon, but not while another session ${what}`, async (t) => {
    const { begin, rows, send, set, take } = await openStorage(t)
    await set('q', options)
    await send('q', 'p', [1, 2])
    if (subscribed) await take('q', { autoAck: true })
    const other = await begin()
    await other.query(row)
    const popping = take('q')
    // Wait twice as long as the lock timeout after which other pops fail.
    await eventually(
      () =>
        rows(
          `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
           and clock_timestamp() - query_start > interval '500 ms'`,
        ).then((found) => found.length > 0),
      { timeoutMs: 30_000 },
    )
    await other.query('commit')
    t.equal((await popping).status, 'messages')
  })
}

test('opening lanes freed by ack_in never waits for a locked lane', async (t) => {
  const { begin, lane, lease, pool, rows, send } = await openStorage(t)
  await send('q', 'p', [1, 2])
  const held = await lease('q')
  await rows('select rouse.ack_in($1)', [held.leaseId])
  const client = await begin()
  await client.query('select from rouse.lanes for update')
  await promoteDue(pool)
  t.equal((await lane()).lease_id, held.leaseId, 'left for the next round')
  await client.query('rollback')
  await promoteDue(pool)
  t.equal((await lane()).lease_id, null)
})

for (const ordering of ['partition', 'none'] as const) {
  test(`1,500 mixed calls with ordering ${ordering} meet no deadlock and lose nothing`, async (t) => {
    const storage = await openStorage(t, 10)
    const random = seededRandom(Number(process.env.ROUSE_TEST_SEED ?? 20_260_716))
    t.comment(`seed ${random.seed}`)
    const mix = mixedCalls(storage, random)
    for (const queue of mix.queues) {
      await storage.set(queue, { ordering, retryLimit: 1000, retryBackoffMs: [0], leaseTime: 3600 })
    }
    await waitWithoutLimit(storage)
    const codes = await mix.run(1_500)
    t.same(
      codes.filter((code) => code !== 'RS409'),
      [],
      'no deadlock, nothing unexpected',
    )
    t.same(await mix.drain(), [], 'every message was delivered in the end')
  })
}

/**
 * Writes give up after a quarter of a second, and nodes repeat them. Here they wait, so that a deadlock among
 * them is reported as one, and a wait on a busy machine is not taken for it. Pops and background work do give
 * up, because SKIP LOCKED can wait in one race, and are repeated.
 */
async function waitWithoutLimit({ pool, rows }: Storage): Promise<void> {
  const writes = await rows<{ name: string }>(
    `select p.oid::regprocedure::text as name from pg_proc p
     where p.pronamespace = 'rouse'::regnamespace and p.proname in ('ack', 'release', 'transaction')
       and 'lock_timeout=250ms' = any (p.proconfig)`,
  )
  if (writes.length !== 3) throw new Error(`${writes.length} of 3 functions have a limit`)
  for (const { name } of writes) await pool.query(`alter function ${name} set lock_timeout = 0`)
}

/** Random calls of every kind on two queues of five partitions, and a record of their effects. */
function mixedCalls({ pool, rows, take }: Storage, random: Random) {
  const queues = ['q0', 'q1']
  const sent = new Set<unknown>()
  const held: Lease[] = []
  let count = 0

  function items(): NewMessage[] {
    return Array.from({ length: 1 + random.below(4) }, () => {
      sent.add((count += 1))
      return message(random.pick(queues), `p${random.below(5)}`, count)
    })
  }
  function takeSome(most: number): Lease[] {
    return Array.from({ length: most }, () => {
      return held.splice(random.below(Math.max(1, held.length)), 1)
    }).flat()
  }
  async function pushSome(): Promise<void> {
    await push(pool, items())
  }
  async function popSome(): Promise<void> {
    const demands = [demand({ batch: 5, partitions: 3 }), demand({ batch: 3, partitions: 2 })]
    const source = { queue: random.pick(queues) }
    const { leases } = await untilNoRetry(() => pop(pool, { source, group: 'g', demands }))
    held.push(...leases)
  }
  async function end(leases: readonly Lease[], status?: 'failed'): Promise<void> {
    const acks = leases.flatMap((lease) => lease.messages.map((_, at) => item(lease, at, status)))
    const delivered = leases.flatMap((lease) => payloads(lease))
    const { rejected } = await ack(pool, acks)
    if (status === 'failed') return
    delivered.forEach((payload, i) => rejected.includes(i) || sent.delete(payload))
  }
  async function transact(): Promise<void> {
    const leases = takeSome(2)
    const acks = leases.flatMap((lease) => lease.messages.map((_, at) => item(lease, at)))
    const pushes = items()
    try {
      await transaction(pool, { acks, pushes })
    } catch (error) {
      for (const { payload } of pushes) sent.delete(JSON.parse(payload))
      throw error
    }
    for (const payload of leases.flatMap((lease) => payloads(lease))) sent.delete(payload)
  }
  const calls = [
    pushSome,
    pushSome,
    popSome,
    popSome,
    () => end(takeSome(3)),
    () => end(takeSome(1), 'failed'),
    transact,
    () =>
      release(
        pool,
        takeSome(1).map(({ leaseId }) => leaseId),
      ),
    () => untilNoRetry(() => promoteDue(pool)),
    () => untilNoRetry(() => reapExpired(pool)),
  ]

  return {
    queues,
    /** Returns the error codes of failed calls. A call with a lease that another call released gets RS409. */
    async run(total: number): Promise<string[]> {
      let left = total
      const codes: string[] = []
      const worker = async () => {
        while (left-- > 0) {
          await random
            .pick<() => Promise<unknown>>(calls)()
            .catch((error: Error & { code?: string }) => {
              codes.push(error.code ?? error.message)
            })
        }
      }
      await Promise.all(Array.from({ length: 10 }, worker))
      return codes
    },
    /** Consumes all remaining messages; returns the payloads that were sent and never completed. */
    async drain(): Promise<unknown[]> {
      // A transaction that was refused because of one lost lease leaves its other leases active.
      const out = await rows<{ id: string }>('select distinct id from rouse.leases')
      await release(
        pool,
        out.map(({ id }) => id),
      )
      for (const queue of queues) {
        let result: PopResult
        do {
          result = await take(queue, { batch: 1000, partitions: 100, autoAck: true })
          for (const payload of payloads(result)) sent.delete(payload)
        } while (result.status === 'messages')
      }
      return [...sent]
    },
  }
}
