// Purges and deletions by operators, and the steps that nodes run for them. Their cost depends on the removed
// rows, not on the other ones.
import {
  configure,
  countLetters,
  deleteGroup,
  deleteQueue,
  patchQueue,
  purge,
  push,
  redrive,
  redriveStep,
  removalStep,
  replaceQueue,
  seek,
  seekPartition,
  setPaused,
  startRedrive,
} from '@rouse/storage'
import { type Measure, prepared, sql } from '../support/measure.ts'
import { leasesIn, type Size } from '../support/skewed-database.ts'

const hotItem = {
  queue: 'hot',
  partition: 'p0',
  id: '00000000-0000-7000-8000-00000000ffff',
  payload: '{}',
}
const redriveId = '00000000-0000-0000-0000-000000000001'

/** SQL that makes a half-finished redrive of a queue, with a hundred dead letters a step. */
function redriveOf(queue: string): string[] {
  return [
    `insert into rouse.redrives (id, queue, criteria, rate_per_second, state, total, position, up_to, next_at, started_at, updated_at)
     select '${redriveId}', '${queue}', '{"errorCode": "code1"}', 1000, 'running', 1000, min(d.id) + (max(d.id) - min(d.id)) / 2, max(d.id),
       now(), now(), now()
     from rouse.dead_letters d where d.queue_id = (select id from rouse.queues where name = '${queue}')`,
    `update rouse.chores set next_at = now() where name = 'redrive'`,
  ]
}

function removalOf(kind: string, queue: string, phase: string): string {
  return `select rouse.begin_removal('${kind}', '${queue}', q.id,
      array(select g.id from rouse.groups g where g.queue_id = q.id and ('${kind}' = 'queue' or '${kind}' = 'group' and g.name = 'g01')), '${phase}')
    from rouse.queues q where q.name = '${queue}'`
}

/** Leases have no index by group, because it would slow down every pop. */
const leasesRead = {
  why: 'it reads all leases, up to six times, and all retries',
  pagesMax: (size: Size) => 500 + leasesIn(size) / 3 + size.letters / 50,
}

/** One call of remove_some removes up to 1,000 rows. In the hot partition, each row takes a few pages. */
const thousandRows = { why: 'a piece of it is a thousand rows', pagesMax: () => 1_000 * 7 }
const someOf = sql('select rouse.remove_some(r) from rouse.removals r')

export const removals: readonly Measure[] = [
  {
    name: 'a push with a duplicate key during a purge in steps',
    call: (probe, { size }) => push(probe, [{ ...hotItem, transactionId: `k${size.hot - 7}` }]),
    prepare: prepared(removalOf('purge', 'hot', 'tails')),
  },
  {
    name: 'a step of a redrive of the hot queue',
    call: (probe) => redriveStep(probe, 'n'),
    prepare: prepared(...redriveOf('hot')),
  },
  {
    name: 'a step of a redrive of a small queue',
    call: (probe) => redriveStep(probe, 'n'),
    prepare: prepared(...redriveOf('q00070')),
  },
  {
    name: 'a redrive of a small queue at once',
    call: (probe) => redrive(probe, { queue: 'q00070' }),
  },
  {
    name: 'the count of letters of a small queue',
    call: (probe) => countLetters(probe, 'q00070', {}),
  },
  {
    name: 'the beginning of a redrive of a small queue',
    call: (probe) =>
      startRedrive(probe, {
        id: redriveId,
        queue: 'q00070',
        where: { consumerGroup: 'g01' },
        rate: undefined,
      }),
  },
  {
    name: 'the end of a redrive',
    call: sql('select * from rouse.cancel_redrive($1)', [redriveId]),
    prepare: prepared(...redriveOf('q00070')),
  },
  {
    name: 'a purge of letters of a small queue',
    call: sql(
      `select * from rouse.purge_letters('q00070', '{"consumerGroup": "g01"}', null, 5000)`,
    ),
  },
  {
    name: 'a purge of 100 letters of the hot queue',
    call: sql(`select * from rouse.purge_letters('hot', '{}', null, 100)`),
  },
  { name: 'a small queue purged', call: (probe) => purge(probe, 'q00070'), grows: leasesRead },
  {
    name: 'a small queue deleted',
    call: (probe) => deleteQueue(probe, 'q00070'),
    grows: leasesRead,
  },
  {
    name: 'a group of a small queue deleted',
    call: (probe) => deleteGroup(probe, 'q00070', 'g01'),
    grows: leasesRead,
  },
  {
    name: 'a group of a small queue moved to the end',
    call: (probe) => seek(probe, { queue: 'q00070', group: 'g01', to: 'end' }),
    grows: leasesRead,
  },
  {
    name: 'a group of the hot queue moved to a time',
    call: (probe) =>
      seek(probe, { queue: 'hot', group: 'g03', to: new Date(Date.now() - 3_600_000) }),
    grows: leasesRead,
  },
  { name: 'a small queue paused', call: (probe) => setPaused(probe, 'q00070', true) },
  {
    name: 'a small queue configured',
    call: (probe) => configure(probe, { queue: 'q00070', options: { leaseTime: 60 } }),
    grows: leasesRead,
  },
  {
    name: 'a small queue with a new rate',
    call: (probe) =>
      configure(probe, { queue: 'q00070', options: { rate: { limit: 5, perMs: 1_000 } } }),
    grows: leasesRead,
  },
  {
    name: 'a small queue replaced',
    call: (probe) => replaceQueue(probe, { queue: 'q00070', options: { leaseTime: 60 } }),
    grows: leasesRead,
  },
  {
    name: 'a small queue patched',
    call: (probe) => patchQueue(probe, { queue: 'q00070', options: { leaseTime: 60 } }),
    grows: leasesRead,
  },
  {
    name: 'a group moved in one partition',
    call: (probe) => {
      const to = new Date(Date.now() - 3_600_000)
      return seekPartition(probe, { queue: 'hot', group: 'g03', partition: 'p0', to })
    },
    grows: leasesRead,
  },
  {
    name: 'a group subscribed to a small queue',
    call: sql(
      `select rouse.subscribe(q.id, 'new', now()) from rouse.queues q where q.name = 'q00070'`,
    ),
  },
  {
    name: 'a step of the removal of a small queue',
    call: (probe) => removalStep(probe, 'n'),
    prepare: prepared(removalOf('queue', 'q00070', 'scheduled')),
  },
  {
    name: 'a piece of a purge: scheduled messages',
    call: someOf,
    prepare: prepared(removalOf('purge', 'q00070', 'scheduled')),
  },
  {
    name: 'a piece of a purge: scheduled messages of many partitions',
    call: someOf,
    prepare: prepared(removalOf('purge', 'cold', 'scheduled')),
    grows: { ...thousandRows, pagesMax: () => 1_000 * 20 },
  },
  {
    name: 'a piece of a purge: the tail of a partition',
    call: someOf,
    prepare: prepared(removalOf('purge', 'cold', 'tails')),
  },
  {
    name: 'a piece of a purge: rows of a small partition',
    call: someOf,
    prepare: prepared(
      removalOf('purge', 'cold', 'partitions'),
      `update rouse.partitions set tail = head, keys_from = head where name = 'c1'`,
    ),
  },
  {
    name: 'a piece of a purge: rows of the hot partition',
    call: someOf,
    prepare: prepared(
      removalOf('purge', 'hot', 'partitions'),
      `update rouse.partitions p set keys_from = p.head from rouse.queues q where q.id = p.queue_id and q.name = 'hot'`,
    ),
    grows: thousandRows,
  },
  {
    name: 'a piece of a deleted queue: a small partition',
    call: someOf,
    prepare: prepared(removalOf('queue', 'cold', 'partitions')),
  },
  {
    name: 'a piece of a deleted queue: the hot partition',
    call: someOf,
    prepare: prepared(removalOf('queue', 'hot', 'partitions')),
    grows: thousandRows,
  },
  {
    name: 'a piece of a deleted queue: letters',
    call: someOf,
    prepare: prepared(removalOf('queue', 'q00070', 'letters')),
  },
  {
    name: 'a piece of a deleted group: a lane',
    call: someOf,
    prepare: prepared(removalOf('group', 'cold', 'partitions')),
  },
  {
    name: 'a piece of a deleted group without order: a lane',
    call: someOf,
    prepare: prepared(removalOf('group', 'loose', 'partitions')),
    grows: { why: 'the leases of its one partition', pagesMax: (size) => 100 + size.loose * 6 },
  },
]
