// Functions for nodes refuse every level but read committed; functions for users work at every level.
import { randomUUID } from 'node:crypto'
import { createPool } from '@rouse/database'
import { ackIn, enqueue, poolExecutor, promoteDue, push } from '@rouse/storage'
import { pgbouncerMissing, startPgbouncer } from '@rouse/testkit'
import { test } from 'tap'
import { message, openStorage, payloads } from '../support/storage.ts'

const lease = '00000000-0000-0000-0000-000000000001'
const one = `array['q'], array['p'], array[1], array['${lease}'::uuid], array['1']`

/**
 * Every function for nodes that writes. At a level other than read committed, it would read an old snapshot
 * after it waited for a lock.
 */
const calls = [
  `rouse.push(${one})`,
  `rouse.push(${one}, array['key'])`,
  `rouse.push_v2(${one})`,
  `rouse.push_v2(array['q'], array[null], array[1], array['${lease}'::uuid], array['1'])`,
  `rouse.push_direct('q', 'p', '${lease}', '1', null, null, null, 'g', null, 'me', '${lease}')`,
  `rouse.push_direct('q', null, '${lease}', '1', null, null, null, 'g', null, 'me', '${lease}')`,
  `rouse.pop('q', null, null, null, 'g', array[1], array[1], array[1000], null, array['me'])`,
  `rouse.pop('q', 'p', null, null, 'g', array[1], array[1], array[1000], null, array['me'])`,
  `rouse.pop(null, null, 'n', null, 'g', array[1], array[1], array[1000], null, array['me'])`,
  `rouse.ack(array['${lease}'::uuid], array[null::bigint], array[null::bigint])`,
  `rouse.ack(array['${lease}'::uuid], array[null::bigint], array[null::bigint], array['failed'])`,
  `rouse.transaction(null, null, null, null, null, null, null, null, ${one}, null, null, null, null, null)`,
  `rouse.release(array['${lease}'::uuid])`,
  `rouse.extend(array['${lease}'::uuid], array[1000])`,
  'rouse.promote_ready(1)',
  'rouse.promote_scheduled(1)',
  `rouse.promote_partition('q', 'p', 1, 1)`,
  'rouse.reap_step(1)',
  'rouse.retain()',
  `rouse.retention_step('me', 1, 1, 1, 1, 1, null, 1, 1)`,
  `rouse.configure('q', null, null, '{}')`,
  `rouse.replace_queue('q', null, null, '{}')`,
  `rouse.patch_queue('q', null, null, '{}')`,
  `rouse.pause('q', true)`,
  `rouse.purge('q')`,
  `rouse.delete_queue('q')`,
  `rouse.delete_group('q', 'g')`,
  `rouse.seek('q', 'g', null)`,
  `rouse.seek_partition('q', 'g', 'p', null)`,
  `rouse.subscribe(1, 'h', null)`,
  `rouse.fire_schedule(1, now(), array['${lease}'::uuid], array[now()], null)`,
  `rouse.redrive('q', '{}')`,
  `rouse.start_redrive('${lease}', 'q', '{}', 1)`,
  `rouse.cancel_redrive('${lease}')`,
  `rouse.redrive_step('me')`,
  `rouse.purge_letters('q', '{}', null, 1)`,
  'rouse.join_cluster()',
  'rouse.adopt_copy()',
  `rouse.create_key('a', 'n', ''::bytea, '{}', '{}', 'me', null, false)`,
  `rouse.revoke_key('a', 0)`,
  `rouse.mark_keys_used('{a}')`,
  `rouse.write_audit('node', '[]')`,
  `rouse.prune_audit(0, 1)`,
  `rouse.cancel_message('${lease}', 1, 1)`,
  `rouse.run_now('${lease}', 1, 1)`,
]

for (const level of ['repeatable read', 'serializable']) {
  test(`functions for nodes are refused at ${level} and change nothing`, async (t) => {
    const { begin, pool, send, take } = await openStorage(t)
    await send('q', 'p', [1])
    await take('q')
    const client = await begin(level)
    for (const call of calls) {
      const refused = client.query(`select * from ${call}`)
      await t.rejects(refused, { code: 'RS400', detail: /"wrong_isolation"/ }, call)
      await client.query('rollback')
      await client.query(`begin isolation level ${level}`)
    }
    t.match((await pool.query('select head from rouse.partitions')).rows, [{ head: '2' }])
  })
}

for (const level of ['read committed', 'repeatable read', 'serializable']) {
  test(`enqueue and ack_in commit with a user's transaction at ${level}`, async (t) => {
    const { begin, pool, send, take } = await openStorage(t)
    await send('in', 'p', ['taken', 'next'])
    const { leases } = await take('in')
    const client = await begin(level)
    await enqueue(client, { queue: 'out', partition: 'p', payload: '"effect"' })
    t.equal(await ackIn(client, String(leases[0]?.leaseId)), 1)
    await send('in', 'p', ['meanwhile'])
    await client.query('commit')
    await promoteDue(pool)
    t.same(payloads(await take('out')), ['effect'])
    t.same(payloads(await take('in', { batch: 9 })), ['next', 'meanwhile'])
  })

  test(`concurrent transactions of users at ${level} that enqueue all commit`, async (t) => {
    const { begin, pool, take } = await openStorage(t)
    const clients = await Promise.all([1, 2, 3, 4].map(() => begin(level)))
    await Promise.all(
      clients.map((client, n) => enqueue(client, { queue: 'q', payload: String(n) })),
    )
    await Promise.all(clients.map((client) => client.query('commit')))
    await promoteDue(pool)
    t.same(new Set(payloads(await take('q', { batch: 9 }))), new Set([0, 1, 2, 3]))
  })
}

test('a connection through pgbouncer keeps working when its server connection gets another level', {
  skip: pgbouncerMissing,
}, async (t) => {
  const { pool: admin, url, rows, take } = await openStorage(t)
  const pgbouncer = await startPgbouncer(url, { poolSize: 1 })
  const through = pgbouncer.through(url)
  const pool = createPool({ url: through, max: 1, applicationName: 'through' })
  t.teardown(async () => {
    await pool.end()
    await pgbouncer.stop()
  })
  const executor = poolExecutor(pool)
  await push(executor, [message('q', 'p', 1)])
  const name = url.split('/').at(-1)
  await admin.query(`alter database ${name} set default_transaction_isolation = 'serializable'`)
  // The server connection ends: pgbouncer opens another one, and the client does not notice.
  await rows(
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity
       where datname = current_database() and application_name = 'through'`,
  )
  const id = randomUUID()
  await push(executor, [{ ...message('q', 'p', 2), id }])
  const { rows: level } = await pool.query('show transaction_isolation')
  t.same(level, [{ transaction_isolation: 'read committed' }])
  t.same(payloads(await take('q', { batch: 9 })), [1, 2])
})
