// Rules 14, 15, 16, 17 and 19 of docs/storage.md: durability, limits, no session state, table settings, the
// clock.
import { readdirSync, readFileSync } from 'node:fs'
import { migrationsDirectory } from '@rouse/database'
import {
  ack,
  type Executor,
  extend,
  pop,
  promoteDue,
  push,
  reapExpired,
  release,
  transaction,
} from '@rouse/storage'
import { test } from 'tap'
import {
  demand,
  finish,
  item,
  message,
  openStorage,
  payloads,
  refusal,
  type Storage,
  start,
} from '../support/storage.ts'

// Rule 14: COMMIT uses the setting that is in force after the function has returned.

type Call = (storage: Storage, on: Executor) => Promise<unknown>
const popOne: Call = ({ take }, on) => take('q', { on })
const durableCalls: Record<string, Call> = {
  'a push': ({ send }, on) => send('q', 'p', [1], on),
  'a push to many partitions': (_, on) => push(on, [message('q', 'p', 1), message('q', 'o', 1)]),
  'a push that creates its queue': ({ send }, on) => send('new', 'p', [1], on),
  'an ack': async ({ lease }, on) => finish(on, await lease('q')),
  'an ack of several': async ({ lease }, on) => ack(on, [item(await lease('q'), 0, 'failed')]),
  'a transaction': async ({ lease }, on) =>
    transaction(on, { acks: [item(await lease('q'))], pushes: [message('q', 'p', 1)] }),
  'an extend': async ({ lease }, on) =>
    extend(on, [{ leaseId: (await lease('q')).leaseId, durationMs: 1_000 }]),
  'a release': async ({ lease }, on) => release(on, [(await lease('q')).leaseId]),
  'a promotion': (_, on) => promoteDue(on),
  'a reap': (_, on) => reapExpired(on),
  'a pop that creates its group': ({ take }, on) => take('q', { group: 'born', on }),
  'a durable pop': ({ take }, on) => take('q', { on, durable: true }),
}

/** Returns the synchronous_commit in force after `call`, in a transaction that began with `before`. */
async function settingAfter(storage: Storage, call: Call, before: string): Promise<string> {
  const client = await storage.begin()
  await client.query(`set local synchronous_commit = ${before}`)
  await call(storage, client)
  const { rows } = await client.query(`select current_setting('synchronous_commit') as value`)
  await client.query('rollback')
  return rows[0].value
}

for (const [name, call] of Object.entries(durableCalls)) {
  test(`${name} is on disk before it returns, and never less durable than the session's setting`, async (t) => {
    const storage = await openStorage(t)
    await storage.send('q', 'p', [1, 2, 3, 4, 5, 6, 7, 8])
    await storage.take('q', { partition: 'nowhere' })
    const free = () =>
      storage.rows('delete from rouse.leases; update rouse.lanes set lease_id = null')
    if (name !== 'a durable pop') {
      t.equal(await settingAfter(storage, call, 'off'), 'on')
      await free()
      t.equal(await settingAfter(storage, call, 'local'), 'on')
      await free()
    }
    if (name !== 'a pop that creates its group') {
      t.equal(await settingAfter(storage, call, 'remote_apply'), 'remote_apply')
      await free()
    }
    t.equal(await settingAfter(storage, call, 'on'), 'on')
  })
}

for (const [name, options] of [
  ['a pop', {}],
  ['a pop of several lanes', { partitions: 3 }],
] as const) {
  test(`${name} waits for the disk only if it must be durable`, async (t) => {
    const storage = await openStorage(t)
    await storage.send('q', 'p', [1, 2])
    await storage.take('q', { partition: 'nowhere' })
    const call: Call = ({ take }, on) => take('q', { on, ...options })
    t.equal(await settingAfter(storage, call, 'on'), 'off')
    const durable: Call = ({ take }, on) => take('q', { on, durable: true, ...options })
    t.equal(await settingAfter(storage, durable, 'on'), 'on')
  })
}

// Rule 15.

test('no more than maxInFlight messages are leased, however many pops run at once', async (t) => {
  const { pool, rows, send, set, take } = await openStorage(t)
  await set('q', { maxInFlight: 5 })
  for (let i = 0; i < 10; i += 1) await send('q', `p${i}`, [1, 2, 3])
  await take('q', { partition: 'nowhere' })
  const results = await Promise.all(
    Array.from({ length: 10 }, () => take('q', { batch: 2, partitions: 2 })),
  )
  const leases = results.flatMap((result) => result.leases)
  t.equal(payloads({ leases }).length, 5)
  t.match(await take('q', { batch: 2 }), { status: 'empty' })
  const { woken } = await finish(pool, leases[0] as (typeof leases)[number])
  t.match(woken, [{ queue: 'q', group: 'g' }], 'an ack wakes the group')
  t.equal((await take('q', { batch: 9, partitions: 9 })).status, 'messages')
  const held = await rows<{ n: string }>('select sum(bit_count(unacked)) as n from rouse.leases')
  t.equal(Number(held[0]?.n), 5)
})

test('each group has its own in-flight limit, and redeliveries count', async (t) => {
  const { lease, pool, send, set, take } = await openStorage(t)
  await set('q', { ordering: 'none', maxInFlight: 1, retryBackoffMs: [0] })
  await send('q', 'p', [1, 2])
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.match(await lease('q'), { attempt: 2 })
  t.equal((await take('q', { batch: 9 })).status, 'empty')
  t.same(payloads(await lease('q', { group: 'other', batch: 9 })), [1])
})

test('two pushes cannot both use the last free space of a queue', async (t) => {
  const { armBarrier, pool, rows, send, set, waiting } = await openStorage(t)
  await set('q', { maxSize: 2 })
  await push(pool, [message('q', 'a', 1)])
  await push(pool, [message('q', 'b', 1, { delayMs: 1 })])
  await set('q', { maxSize: 3 })
  const first = await armBarrier('push-general-locked')
  const winner = send('q', 'a', [2])
  await first.reached()
  const loser = refusal(send('q', 'b', [2]))
  await waiting()
  await first.release()
  await winner
  t.match(await loser, { state: 'RS429', detail: { code: 'queue_full', size: 3, maxSize: 3 } })
  t.equal((await rows('select from rouse.messages')).length, 2)
})

test('the size of a queue is the number of messages that its slowest group has not completed', async (t) => {
  const { lease, pool, send, set } = await openStorage(t)
  await set('q', { maxSize: 2 })
  await send('q', 'p', [1, 2])
  t.match(await refusal(send('q', 'p', [3])), { state: 'RS429' })
  const held = await lease('q', { batch: 2 })
  t.match(await refusal(send('q', 'p', [3])), { state: 'RS429' }, 'leased is not completed')
  await ack(pool, [item(held)])
  await send('q', 'p', [3])
  t.match(await refusal(send('q', 'p', [4])), { state: 'RS429' })
  await finish(pool, held)
  t.match(await refusal(send('q', 'p', [4, 5])), { state: 'RS429' }, 'all or nothing')
  await send('q', 'p', [4])
})

test('the ordering of a queue cannot become stricter while messages are leased without order', async (t) => {
  const { lease, pool, send, set } = await openStorage(t)
  await set('q', { ordering: 'none' })
  await send('q', 'p', [1])
  const held = await lease('q')
  for (const ordering of ['keyed', 'partition']) {
    t.match(await refusal(set('q', { ordering })), {
      state: 'RS409',
      detail: { code: 'queue_in_use', field: 'ordering' },
    })
  }
  await set('q', { ordering: 'none', priority: 3 })
  await finish(pool, held)
  await set('q', { ordering: 'partition' })
})

test('a change of the ordering waits for a pop that is about to lease, and is refused', async (t) => {
  const { armBarrier, send, set, take, waiting } = await openStorage(t)
  await set('q', { ordering: 'none' })
  await send('q', 'p', [1, 2])
  await take('q', { partition: 'nowhere' })
  const popping = await armBarrier('pop-lane-offered')
  const first = take('q')
  await popping.reached()
  const change = refusal(set('q', { ordering: 'partition' }))
  await waiting()
  await popping.release()
  t.equal((await first).status, 'messages')
  t.match(await change, { state: 'RS409' })
})

// Rules 16 and 17.

test('no call changes its session', async (t) => {
  const { begin, pool, rows, send, set } = await openStorage(t, 1)
  const settings = `select name, setting from pg_settings where source = 'session' order by 1`
  await send('q', 'p', [1, 2, 3])
  const before = await rows(settings)
  await set('q', { ordering: 'none', maxInFlight: 9 })
  const { leases } = await pop(pool, {
    source: { queue: 'q' },
    group: 'g',
    demands: [demand({ batch: 3 })],
  })
  const held = leases[0] as (typeof leases)[number]
  await extend(pool, [{ leaseId: held.leaseId, durationMs: 9 }])
  await transaction(pool, { acks: [item(held)], pushes: [message('q', 'p', 1)] })
  await ack(pool, [item(held, 1, 'failed')])
  await release(pool, [held.leaseId])
  await promoteDue(pool)
  t.same(await rows(settings), before)
  t.same(
    await rows(`select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`),
    [],
  )
  t.same(await rows(`select from pg_class where relpersistence = 't'`), [])
  t.same(await rows('select from pg_listening_channels()'), [])
  t.type(begin, 'function')
})

test('tables that are updated have free space on their pages and are vacuumed early', async (t) => {
  const { rows } = await openStorage(t)
  const tables = await rows<{ name: string; options: string[] | null }>(
    `select relname as name, reloptions as options from pg_class
     where relnamespace = 'rouse'::regnamespace and relkind = 'r'`,
  )
  for (const name of ['partitions', 'lanes', 'leases']) {
    const options = tables.find((table) => table.name === name)?.options?.join(' ') ?? ''
    t.match(options, /fillfactor=[5-8]0/, name)
    t.match(options, /autovacuum_vacuum_scale_factor=0\.0/, name)
  }
})

// Rule 19.

test('every function reads the clock that tests can freeze', async (t) => {
  const folder = `${migrationsDirectory}/functions`
  const others =
    /\b(clock_timestamp|transaction_timestamp|statement_timestamp|current_timestamp|localtimestamp)\b|(?<!rouse\.)\bnow\(\)/
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const offenders = files.filter((file) => {
    if (!file.endsWith('.sql')) return false
    // Lines with the start or the deadline of a step may read the real clock: they measure durations.
    const code = readFileSync(`${folder}/${file}`, 'utf8').replaceAll(
      /--.*$|^.*\b(v_begun|v_ends|p_ends)\b.*$/gm,
      '',
    )
    return file !== 'now.sql' && others.test(code)
  })
  t.same(offenders, [])
})

test('messages, leases and groups have the time of a frozen clock', async (t) => {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  await storage.send('q', 'p', [1])
  await popOne(storage, storage.pool)
  const stamps = await storage.rows<{ at: Date }>(
    `select created_at as at from rouse.messages union select delivered_at from rouse.leases
     union select created_at from rouse.groups union select created_at from rouse.queues
     union select last_created_at from rouse.partitions`,
  )
  t.same(stamps, [{ at: new Date(start) }])
})
