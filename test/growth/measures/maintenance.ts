// Calls that nodes make on their own: when a timer ends, once a second, or once a minute.
import {
  adoptCopy,
  dueSchedules,
  dueTimes,
  encryptedQueues,
  exchangeNodes,
  groupsWithWork,
  joinCluster,
  promotePartition,
  promoteReady,
  promoteScheduled,
  reapStep,
  removeNode,
  retainDefaults,
  retentionStep,
  takeLetGoGroups,
} from '@rouse/storage'
import { type Measure, prepared, sql } from '../support/measure.ts'
import { leasesIn, type Size } from '../support/skewed-database.ts'
import type { Probe } from '../support/touched.ts'

const node = {
  id: 'node-1',
  incarnation: 1,
  httpUrl: null,
  gossipAddress: '127.0.0.1:1',
  version: '0',
  queueDefaults: undefined,
}
const day = 86_400_000
/** The number of due rows, the same in the small and the large database. */
const due = 100

const leasesDue = `update rouse.leases set expires_at = now() - interval '1 second' where id in (
  select lease_id from rouse.lanes where lease_id is not null order by partition_id limit ${due})`
const retriesDue = [
  `update rouse.redeliveries r set due_at = now() - interval '1 second'
   from (select partition_id, group_id from rouse.lanes where blocked_until is not null order by partition_id limit ${due}) l
   where r.partition_id = l.partition_id and r.group_id = l.group_id`,
  `update rouse.lanes l set blocked_until = now() - interval '1 second'
   where (partition_id, group_id) in (select partition_id, group_id from rouse.redeliveries where due_at < now())`,
]
const scheduledDue = `update rouse.scheduled set due_at = now() - interval '1 second'
  where id in (select id from rouse.scheduled where queue = 'cold' order by id limit ${due})`
const freedLanes = `with ended as (
    delete from rouse.leases where id in (select lease_id from rouse.lanes where lease_id is not null order by partition_id limit ${due})
    returning partition_id, group_id, id)
  insert into rouse.freed (partition_id, group_id, lease_id) select * from ended`

function onlyChore(name: string, position = '0'): string {
  return `update rouse.chores set position = ${position}, next_at = case when name = '${name}' then now() else 'infinity' end`
}

function retention(rows: number) {
  return (probe: Probe): Promise<unknown> =>
    retentionStep(probe, {
      ...retainDefaults,
      holder: 'n',
      intervalMs: 60_000,
      idleGroupMs: 14 * day,
      rows,
    })
}

/** A step of retention reads a fixed number of partitions, with a few pages each. */
const partitionsRead = { why: 'it reads 20,000 partitions a step', pagesMax: () => 20_000 * 6 }

/** Retention needs the first retry of any group in a partition, but the index is by partition and group. */
const retriesRead = {
  why: 'it reads all retries of the partition, three times',
  pagesMax: (size: Size) => 2_000 + 3 * (size.letters / 10 + size.dead),
}

export const maintenance: readonly Measure[] = [
  { name: 'times that are due', call: (probe) => dueTimes(probe, 1_500) },
  { name: 'reaping where no lease is due', call: (probe) => reapStep(probe) },
  { name: 'reaping of 100 leases', call: (probe) => reapStep(probe), prepare: prepared(leasesDue) },
  { name: 'promotion where nothing is due', call: (probe) => promoteReady(probe) },
  {
    name: 'promotion of 100 retries',
    call: (probe) => promoteReady(probe),
    prepare: prepared(...retriesDue),
  },
  {
    name: 'promotion of 100 freed lanes',
    call: (probe) => promoteReady(probe),
    prepare: prepared(freedLanes),
  },
  { name: 'promotion where nothing scheduled is due', call: (probe) => promoteScheduled(probe) },
  {
    name: 'promotion of 100 scheduled messages',
    call: (probe) => promoteScheduled(probe),
    prepare: prepared(scheduledDue),
    grows: { why: 'each message has a partition of its own', pagesMax: () => due * 100 },
  },
  {
    name: 'promotion of one partition',
    call: (probe) =>
      promotePartition(probe, { queue: 'cold', partition: 'c1' }, { limit: 100, lockMs: 100 }),
    prepare: prepared(scheduledDue),
  },
  {
    name: 'promotion of one partition that is not there yet',
    call: (probe) =>
      promotePartition(probe, { queue: 'cold', partition: 'new' }, { limit: 100, lockMs: 100 }),
    prepare: prepared(
      `update rouse.scheduled set partition = 'new', due_at = now() - interval '1 minute'
       where id = (select min(id) from rouse.scheduled where queue = 'cold')`,
    ),
  },
  {
    name: 'a step of retention in the hot partition',
    call: retention(200),
    prepare: prepared(onlyChore('retention', '-1')),
    grows: retriesRead,
  },
  {
    name: 'a step of retention over cold partitions',
    call: retention(200),
    prepare: prepared(
      onlyChore(
        'retention',
        `(select min(p.id) from rouse.partitions p join rouse.queues q on q.id = p.queue_id where q.name = 'cold')`,
      ),
    ),
    grows: partitionsRead,
  },
  {
    name: 'a step of retention over expired messages',
    call: retention(200),
    prepare: prepared(
      `create temporary table expired on commit drop as
         select p.id, p.tail, p.head from rouse.partitions p join rouse.queues q on q.id = p.queue_id where q.name = 'q00070' and p.name = 'a'`,
      `update rouse.messages set created_at = now() - interval '3 days' where partition_id = (select id from expired)`,
      `insert into rouse.message_options (partition_id, seq, expires_at)
         select id, s, now() - interval '2 days' from expired, generate_series(tail, head - 1) s`,
      'update rouse.partitions p set options_until = p.head from expired e where p.id = e.id',
      onlyChore('retention', '(select min(id) - 1 from expired)'),
    ),
    grows: partitionsRead,
  },
  {
    name: 'a step of retention over 100 idle partitions',
    call: retention(200),
    prepare: prepared(
      `create temporary table idle on commit drop as
         select p.id from rouse.partitions p join rouse.queues q on q.id = p.queue_id where q.name like 'q%' and p.name = 'b' order by p.id limit ${due}`,
      'delete from rouse.messages where partition_id in (select id from idle)',
      'delete from rouse.dead_letters where partition_id in (select id from idle)',
      `update rouse.partitions set tail = head, swept_to = head, last_created_at = now() - interval '30 days' where id in (select id from idle)`,
      onlyChore('retention', '(select min(id) - 1 from idle)'),
    ),
    grows: partitionsRead,
  },
  {
    name: 'a step of retention over dedupe keys',
    call: retention(50),
    prepare: prepared(onlyChore('dedup')),
    grows: { why: 'it sweeps 1,920 pages a step', pagesMax: () => 1_920 * 3 },
  },
  {
    name: 'a step of retention over unique keys',
    call: retention(50),
    prepare: prepared(
      `insert into rouse.unique_keys (queue_id, partition_id, key, message_id, expires_at)
       select 1, 0, 'k' || i, gen_random_uuid(), now() from generate_series(1, 100) i`,
      onlyChore('unique'),
    ),
  },
  {
    name: 'a step of retention where no history is due',
    call: retention(200),
    prepare: prepared(onlyChore('history')),
  },
  {
    name: 'a step of retention over 100 dead letters, attempts and traces',
    call: retention(200),
    prepare: prepared(
      ...['dead_letters.failed_at', 'attempts.ended_at', 'traces.created_at'].map((column) => {
        const [table, at] = column.split('.')
        return `update rouse.${table} set ${at} = now() - interval '30 days' where id in (select id from rouse.${table} order by id limit ${due})`
      }),
      onlyChore('history'),
    ),
  },
  {
    name: 'retention for nodes of the previous release',
    call: sql(
      'select * from rouse.retain(p_rows => 200, p_after => -1, p_idle_group_ms => 1209600000)',
    ),
    grows: retriesRead,
  },
  {
    name: 'the watch over idle groups',
    call: sql(`select rouse.watch_idle_groups(1209600000, '0')`),
    prepare: prepared('update rouse.idle_groups set measured_at = null'),
    grows: {
      why: 'once a round it reads all groups and leases, and 5,000 partitions of an idle group',
      pagesMax: (size) =>
        1_000 + (size.queues + 60) / 10 + leasesIn(size) / 10 + 2 * Math.min(size.cold, 5_000) * 20,
    },
  },
  {
    name: 'groups to warn about',
    call: (probe) => takeLetGoGroups(probe, 10),
    prepare: prepared('update rouse.idle_groups set warned_at = null'),
  },
  {
    name: 'schedules that are due',
    call: (probe) => dueSchedules(probe, 100, []),
    prepare: prepared(`update rouse.schedules set next_at = now() where name < 's00050'`),
  },
  {
    name: 'a tick of a schedule',
    call: sql(
      `select s.name, f.* from rouse.schedules s, rouse.fire_schedule(s.id, s.next_at, array[gen_random_uuid()], array[now()], now()) f
       where s.name = 's00070'`,
    ),
  },
  { name: 'the exchange between nodes', call: (probe) => exchangeNodes(probe, node, 60_000) },
  { name: 'a node that joins', call: joinCluster },
  {
    name: 'a restored copy that is adopted',
    prepare: prepared(`update rouse.cluster set database_name = 'original'`),
    call: adoptCopy,
  },
  { name: 'a node that leaves', call: (probe) => removeNode(probe, node, day) },
  {
    name: 'the fallback poll of 100 wait groups',
    call: (probe) =>
      groupsWithWork(
        probe,
        Array.from({ length: due }, (_, i) => ({
          source:
            i < 90
              ? { queue: `q${String(i + 1).padStart(5, '0')}` }
              : { queue: 'cold', partition: `c${i}` },
          group: 'g01',
        })),
      ),
  },
  {
    name: 'the names of encrypted queues',
    call: (probe) => encryptedQueues(probe),
    grows: { why: 'it reads all queues, every 10 s', pagesMax: (size) => 50 + size.queues / 5 },
  },
]
