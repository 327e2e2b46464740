// Tables as retention finds them after long use: one partition has most of the messages, many others have one
// message each, and dedupe keys are in reused space.
import type pg from 'pg'

/**
 * Creates queue `hot`, with one partition of consumed messages that are two days old, and queue `cold`, with
 * partitions of one recent message each.
 */
export async function fillSkewed(
  client: pg.ClientBase,
  shape: { readonly hot: number; readonly cold: number },
): Promise<void> {
  for (const queue of ['hot', 'cold'])
    await client.query(`select rouse.write_queue($1, null, null, '{}', false)`, [queue])
  await client.query(
    `insert into rouse.groups (queue_id, name, created_at, last_seen_at)
     select id, 'g', now(), now() from rouse.queues where name in ('hot', 'cold')`,
  )
  for (const [queue, partitions, messages, age] of [
    ['hot', 1, shape.hot, '2 days'],
    ['cold', shape.cold, 1, '0'],
  ] as const) {
    await client.query(
      `insert into rouse.partitions (queue_id, name, head, last_created_at)
       select q.id, 'p' || n, $3 + 1, now() - $4::interval
       from rouse.queues q, generate_series(1, $2) n where q.name = $1`,
      [queue, partitions, messages, age],
    )
    await client.query(
      `insert into rouse.messages (partition_id, seq, id, created_at, payload)
       select p.id, n, gen_random_uuid(), p.last_created_at, '{"some": "payload"}'
       from rouse.partitions p join rouse.queues q on q.id = p.queue_id, generate_series(1, $2) n
       where q.name = $1`,
      [queue, messages],
    )
  }
  await client.query(
    `insert into rouse.lanes (partition_id, group_id, next, ready)
     select p.id, g.id, p.head, false from rouse.partitions p join rouse.groups g on g.queue_id = p.queue_id
     where g.name = 'g'`,
  )
}

/**
 * Adds dedupe keys as several dedupe windows leave them. The keys of each tick expire one window later and
 * are then removed and vacuumed. Those that expired in the last half of a window are still there, for
 * retention to remove.
 */
export async function fillReused(
  client: pg.ClientBase,
  shape: { readonly keysPerTick: number; readonly ticksPerWindow: number; readonly ticks: number },
): Promise<void> {
  const { keysPerTick, ticksPerWindow, ticks } = shape
  const last = ticks - 1
  for (let tick = 0; tick <= last; tick += 1) {
    await client.query(
      `insert into rouse.dedup (partition_id, key, message_id, seq, expires_at)
       select 1, gen_random_uuid()::text, gen_random_uuid(), n, now() + $2 * interval '1 minute'
       from generate_series(1, $1) n`,
      [keysPerTick, tick + ticksPerWindow - last],
    )
    if (tick < ticksPerWindow || tick >= ticks - ticksPerWindow / 2) continue
    await client.query(
      `delete from rouse.dedup where expires_at <= now() + $1 * interval '1 minute'`,
      [tick - last],
    )
    await client.query('vacuum rouse.dedup')
  }
}

interface Explained {
  readonly Plan: { readonly 'Shared Hit Blocks': number; readonly 'Shared Read Blocks': number }
}

/** Runs one step of the retention job that is due; returns the pages touched and the rows removed. */
export async function costOfStep(
  client: pg.ClientBase,
  rows: number,
): Promise<{ pages: number; removed: number; position: number }> {
  const day = 86_400_000
  const counted = `select (select count(*) from rouse.messages) + (select count(*) from rouse.dedup) as n`
  const before = await client.query<{ n: string }>(counted)
  await client.query('update rouse.chores set next_at = rouse.now() where isfinite(next_at)')
  const { rows: plans } = await client.query<{ 'QUERY PLAN': [Explained] }>(
    `explain (analyze, buffers, format json)
     select * from rouse.retention_step('n', 60000, ${day}, ${day}, ${day}, ${day}, null, 100, ${rows})`,
  )
  const after = await client.query<{ n: string }>(counted)
  const chores = await client.query<{ position: string }>(
    'select position from rouse.chores where isfinite(next_at)',
  )
  const plan = (plans[0] as { 'QUERY PLAN': [Explained] })['QUERY PLAN'][0].Plan
  return {
    pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
    removed: Number(before.rows[0]?.n) - Number(after.rows[0]?.n),
    position: Number(chores.rows[0]?.position),
  }
}
