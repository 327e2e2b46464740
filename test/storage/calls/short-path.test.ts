// push, pop and ack have short paths for plain cases and leave the rest to their general forms. Random
// sequences of calls run on two databases: one as it ships, and one whose push, pop and ack always take the
// general form. Every result and all tables must be equal. A failure prints the seed and the shortest
// sequence.
import { readFileSync } from 'node:fs'
import { migrationsDirectory } from '@rouse/database'
import { test } from 'tap'
import { calls, compareTwins, openTwins } from '../support/agreement.ts'
import type { Storage } from '../support/storage.ts'

const seed = Number(process.env.ROUSE_TEST_SEED ?? 1)

test('the short paths of push, pop and ack do what the general forms do', async (t) => {
  const twins = await openTwins(t)
  await countCalls(twins.shipped)
  const { runs, difference } = await compareTwins(twins, { seed, runsMax: 100, msMax: 30_000 })
  t.equal(difference, undefined)
  t.ok(runs >= 20, `seed ${seed}, ${runs} sequences`)
  const called = await callCounts(twins.shipped)
  for (const name of calls) {
    const all = called.get(name) ?? 0
    const share = 1 - (called.get(`${name.replace('_v2', '')}_general`) ?? 0) / all
    t.ok(
      share > 0.05,
      `${Math.round(100 * share)} % of ${all} calls of ${name} took its short path`,
    )
  }
})

test('a push that delivers its message does what a push and a pop of its partition do', async (t) => {
  const twins = await openTwins(t)
  await countCalls(twins.shipped)
  const { runs, difference } = await compareTwins(twins, {
    seed,
    runsMax: 100,
    msMax: 30_000,
    delivers: true,
  })
  t.equal(difference, undefined)
  t.ok(runs >= 20, `seed ${seed}, ${runs} sequences`)
  const direct = (await callCounts(twins.shipped)).get('push_direct') ?? 0
  const share = twins.delivered.count / direct
  t.ok(share > 0.05, `${Math.round(100 * share)} % of ${direct} pushes delivered their messages`)
})

/** Changes of one form, each small. The comparison must notice every one of them. */
const changes: readonly {
  readonly what: string
  readonly in: 'shipped' | 'general'
  readonly file: string
  readonly find: string
  readonly put: string
  /** Queue options with which the change has its effect. */
  readonly options?: Record<string, unknown>
  readonly delivers?: boolean
}[] = [
  {
    what: 'an ack of one message completes the whole lease',
    in: 'shipped',
    file: 'ack/ack.sql',
    find: 'select case\n    when p_seq is null then',
    put: 'select case\n    when p_seq is not null or p_seq is null then',
  },
  {
    what: 'an ack ignores the group it was given',
    in: 'shipped',
    file: 'ack/ack.sql',
    find: '    where p_group is null or exists (select from rouse.groups g where g.id = s.group_id and g.name = p_group);\n    if',
    put: '    ;\n    if',
  },
  {
    what: 'an ack of an unordered message ignores the expiry of its lease',
    in: 'shipped',
    file: 'ack/ack.sql',
    find: 'v_rest is null or v_expires_at <= rouse.now()',
    put: 'v_rest is null or (v_ordered and v_expires_at <= rouse.now())',
    options: { ordering: 'none' },
  },
  {
    what: 'the hint of a freed lane counts one message too many',
    in: 'shipped',
    file: 'ack/ack.sql',
    find: 'rouse.lane_count(f.ready, p.head - greatest(f.next, p.tail),',
    put: 'rouse.lane_count(f.ready, p.head + 1 - greatest(f.next, p.tail),',
  },
  {
    what: 'the general form of ack hints a lane without messages as unknown',
    in: 'general',
    file: 'ack/ack_general.sql',
    find: 'rouse.lane_count(l.ready, ',
    put: 'rouse.lane_count(true, ',
  },
  {
    what: 'a pop leases one message more than it returns',
    in: 'shipped',
    file: 'pop/pop.sql',
    find: 'values (v_lease_id, v_lane_id, v_group_id, v_from, v_next - 1,\n          coalesce',
    put: 'values (v_lease_id, v_lane_id, v_group_id, v_from, v_next,\n          coalesce',
  },
  {
    what: 'a pop does not continue with the lanes before its start',
    in: 'shipped',
    file: 'pop/pop.sql',
    find: 'exit when v_to = p_after or p_after = 0;',
    put: 'exit;',
  },
  {
    what: 'a pop does not move the cursor of an unordered lane past its second waiter',
    in: 'shipped',
    file: 'pop/pop.sql',
    find: '      set next = v_next,\n        ready = not',
    put: '      set next = least(v_next, v_first + p_batches[1]),\n        ready = not',
    options: { ordering: 'none' },
  },
  {
    what: 'a pop of several lanes takes one message too many',
    in: 'shipped',
    file: 'pop/pop_lanes.sql',
    find: 'least(t.first + p_batch - t.before, t.head) as next',
    put: 'least(t.first + p_batch + 1 - t.before, t.head) as next',
  },
  {
    what: 'a pop of several lanes does not continue with the lanes before its start',
    in: 'shipped',
    file: 'pop/pop_lanes.sql',
    find: 'and l.partition_id <= p_after',
    put: 'and l.partition_id < p_after',
  },
  {
    what: 'a pop of several lanes passes over a message that waits for its retry',
    in: 'shipped',
    file: 'pop/pop_lanes.sql',
    find: 'where r.partition_id = any (v_lanes)',
    put: 'where false and r.partition_id = any (v_lanes)',
  },
  {
    what: 'a pop of several lanes leaves drained lanes ready',
    in: 'shipped',
    file: 'pop/pop_lanes.sql',
    find: 'ready = not (l.partition_id = any (v_settled)',
    put: 'ready = not (false',
  },
  {
    what: 'an ack of several messages ignores the expiry of a lease',
    in: 'shipped',
    file: 'ack/ack_lanes.sql',
    find: 's.expires_at > v_now and not s.limited',
    put: 'not s.limited',
  },
  {
    what: 'an ack of several messages ignores the group it was given',
    in: 'shipped',
    file: 'ack/ack_lanes.sql',
    find: 'where p_group is null or exists (select from rouse.groups g where g.id = s.group_id and g.name = p_group)',
    put: '',
  },
  {
    what: 'an ack of several messages accepts a message twice',
    in: 'shipped',
    file: 'ack/ack_lanes.sql',
    find: 'bit_count(s.acked) = s.items and ',
    put: '',
  },
  {
    what: 'an ack of several messages accepts a message that the lease does not hold any more',
    in: 'shipped',
    file: 'ack/ack_lanes.sql',
    find: ' and s.acked & s.unacked = s.acked',
    put: '',
  },
  {
    what: 'an ack of several messages ends the leases that hold more',
    in: 'shipped',
    file: 'ack/ack_lanes.sql',
    find: 'array_agg(s.unacked & ~s.acked) as rests',
    put: 'array_agg(s.unacked & ~s.unacked) as rests',
  },
  {
    what: 'an ack of several messages hints one message too many',
    in: 'shipped',
    file: 'ack/ack_lanes.sql',
    find: 'p.head - greatest(f.next, p.tail)',
    put: 'p.head + 1 - greatest(f.next, p.tail)',
  },
  {
    what: 'a push stores a message without its key',
    in: 'shipped',
    file: 'push/push.sql',
    find: 'greatest(v_now, v_last_created_at), p_transaction_ids[1],',
    put: 'greatest(v_now, v_last_created_at), null,',
  },
  {
    what: 'a push delivers its message from a lane that is leased',
    in: 'shipped',
    file: 'push/push_direct.sql',
    find: ' and l.lease_id is null',
    put: '',
    delivers: true,
  },
  {
    what: 'a push that delivers its message does not move the cursor',
    in: 'shipped',
    file: 'push/push_direct.sql',
    find: 'case when l.group_id = v_leased_group_id then first_seq + 1 else l.next end',
    put: 'l.next',
    delivers: true,
  },
  {
    what: 'a push that delivers its message wakes no lane of other groups',
    in: 'shipped',
    file: 'push/push_direct.sql',
    find: 'set ready = l.group_id is distinct from v_leased_group_id',
    put: 'set ready = v_leased_group_id is null',
    delivers: true,
  },
  {
    what: 'a push that delivers its message closes an unordered lane',
    in: 'shipped',
    file: 'push/push_direct.sql',
    find: 'when l.group_id = v_leased_group_id and v_ordered then',
    put: 'when l.group_id = v_leased_group_id then',
    options: { ordering: 'none' },
    delivers: true,
  },
  {
    what: 'a push keeps its keys for too short a time',
    in: 'shipped',
    file: 'push/push.sql',
    find: "v_now + v_dedup_ms * interval '1 millisecond'",
    put: "v_now + v_dedup_ms * interval '0.9 milliseconds'",
  },
  {
    what: 'a push with a known key adds all its messages',
    in: 'shipped',
    file: 'push/push_known.sql',
    find: '    where m.seq_offset is not null;',
    put: '    where true;',
  },
  {
    what: 'the general form of push does not set lanes ready',
    in: 'general',
    file: 'push/push_general.sql',
    find: 'perform rouse.wake_lanes(v_ids);',
    put: '',
  },
  {
    what: 'the general form of push counts from the wrong head',
    in: 'general',
    file: 'push/push_general.sql',
    find: 'select unnest(v_targets.targets), unnest(v_ids), unnest(v_heads),',
    put: 'select unnest(v_targets.targets), unnest(v_ids), unnest(v_ids),',
  },
]

for (const { what, in: where, file, find, put, options, delivers } of changes) {
  test(`the comparison notices if ${what}`, async (t) => {
    const twins = await openTwins(t)
    await change(twins[where], file, find, put)
    const { runs, difference } = await compareTwins(twins, {
      seed,
      runsMax: 500,
      msMax: 60_000,
      anyDifference: true,
      options,
      ...(delivers === true && { delivers }),
    })
    t.ok(difference, `after ${runs} sequences`)
  })
}

/** Applies a file of functions with one replacement. The twin that takes general forms keeps doing so. */
async function change({ rows }: Storage, file: string, find: string, put: string): Promise<void> {
  const text = readFileSync(`${migrationsDirectory}/functions/${file}`, 'utf8')
  if (text.split(find).length !== 2) throw new Error(`${file} has no single "${find}"`)
  await rows(text.replace(find, () => put))
}

/** Counts calls in all sessions, because the pool replaces a connection after a failed statement. */
async function countCalls({ rows }: Storage): Promise<void> {
  await rows(
    `do $$ begin execute format('alter database %I set track_functions = pl', current_database()); end $$`,
  )
  await rows('set track_functions = pl')
}

async function callCounts({ rows }: Storage): Promise<Map<string, number>> {
  await rows('select pg_stat_force_next_flush()')
  const found = await rows<{ name: string; calls: number }>(
    `select funcname as name, calls::float8 from pg_stat_user_functions where schemaname = 'rouse'`,
  )
  return new Map(found.map(({ name, calls: count }) => [name, count]))
}
