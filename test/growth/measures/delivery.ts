import { randomUUID } from 'node:crypto'
import type { PopSource } from '@rouse/protocol'
import {
  type AckItem,
  ack,
  ackIn,
  type Executor,
  enqueue,
  enqueueMany,
  extend,
  findHeld,
  type Lease,
  type NewMessage,
  pop,
  push,
  pushDirect,
  release,
  reportProgress,
  transaction,
} from '@rouse/storage'
import type pg from 'pg'
import { type Measure, prepared } from '../support/measure.ts'
import type { Probe } from '../support/touched.ts'

function item(
  queue: string,
  partition: string | undefined,
  more: Partial<NewMessage> = {},
): NewMessage {
  return { queue, partition, id: randomUUID(), payload: '{"some": "payload"}', ...more }
}

const demands = [{ batch: 10, partitions: 2, holder: 'test' }]

function popFrom(executor: Executor, source: PopSource, group = 'g01'): ReturnType<typeof pop> {
  return pop(executor, { source, group, demands })
}

/** Measures a call that uses a lease, by default of ten messages of queue `hot`. */
function withLease(
  name: string,
  call: (probe: Probe, lease: Lease) => Promise<unknown>,
  queue = 'hot',
  batch = 10,
): Measure {
  let lease: Lease | undefined
  return {
    name,
    call: (probe) => call(probe, lease as Lease),
    prepare: async (client) => {
      const { leases } = await pop(client, {
        source: { queue },
        group: queue === 'cold' ? 'g03' : 'g01',
        demands: [{ batch, partitions: 2, holder: 'test' }],
      })
      lease = leases[0]
    },
  }
}

function first({ leaseId, partitionId, messages }: Lease, status: AckItem['status']): AckItem {
  return { leaseId, message: { partitionId, seq: messages[0]?.seq ?? 0 }, status }
}

/** A partition of which group g01 has read everything. */
async function drained(client: pg.ClientBase): Promise<void> {
  await push(client, [item('hot', 'fresh')])
  const { leases } = await pop(client, {
    source: { queue: 'hot', partition: 'fresh' },
    group: 'g01',
    demands: [{ batch: 1, partitions: 1, holder: 'test' }],
  })
  await ack(client, [{ leaseId: leases[0]?.leaseId as string }])
}

export const delivery: readonly Measure[] = [
  { name: 'a push to the hot partition', call: (probe) => push(probe, [item('hot', 'p0')]) },
  { name: 'a push to a cold partition', call: (probe) => push(probe, [item('cold', 'c300')]) },
  {
    name: 'a push that delivers its message',
    // The first one drains the partition, if it was not.
    prepare: drained,
    call: (probe) =>
      pushDirect(
        probe,
        item('hot', 'fresh'),
        { leaseId: randomUUID(), group: 'g01', holder: 'test' },
        undefined,
      ),
  },
  {
    name: 'a push with a key',
    call: (probe) => push(probe, [item('hot', 'p0', { transactionId: 'new' })]),
  },
  {
    name: 'a push with keys to two partitions',
    call: (probe) =>
      push(
        probe,
        ['c300', 'c301'].map((name) => item('cold', name, { transactionId: 'new' })),
      ),
  },
  {
    name: 'a push with a duplicate key',
    call: (probe, { size }) =>
      push(probe, [item('hot', 'p0', { transactionId: `k${size.hot - 7}` })]),
  },
  {
    name: 'a push with a delay',
    call: (probe) => push(probe, [item('hot', 'p0', { delayMs: 60_000 })]),
  },
  {
    name: 'a push with options',
    call: (probe) =>
      push(probe, [item('hot', 'p0', { options: { retryLimit: 1, ttlMs: 60_000 } })]),
  },
  {
    name: 'a push with a priority',
    call: (probe) => push(probe, [item('loose', undefined, { priority: 5 })]),
  },
  {
    name: 'a pop from a queue with priorities',
    call: (probe) => popFrom(probe, { queue: 'loose' }),
    prepare: (client) => push(client, [item('loose', undefined, { priority: 5 })]),
  },
  {
    name: 'a push of independent messages',
    call: (probe) => push(probe, [item('hot', undefined), item('cold', undefined)]),
  },
  {
    name: 'a push to Default, by name and without',
    call: (probe) => push(probe, [item('loose', undefined), item('loose', 'Default')]),
  },
  {
    name: 'a push by a node of the previous release',
    call: (probe) =>
      probe.query({
        text: `select * from rouse.push(array['hot'], array['p0'], array[1], array[$1::uuid], array['1'])`,
        values: [randomUUID()],
      }),
  },
  { name: 'a push to a new partition', call: (probe) => push(probe, [item('q00070', 'new')]) },
  { name: 'a push to a new queue', call: (probe) => push(probe, [item('new', 'p0')]) },
  { name: 'a push to a queue with a limit', call: (probe) => push(probe, [item('limited', 'p0')]) },
  {
    name: 'a push to 100 queues',
    call: (probe) =>
      push(
        probe,
        Array.from({ length: 100 }, (_, i) => item(`q${String(i + 1).padStart(5, '0')}`, 'a')),
      ),
  },
  {
    name: 'a message enqueued by SQL',
    call: (probe) => enqueue(probe, { queue: 'q00070', payload: '{}' }),
  },
  {
    name: 'a message with options enqueued by SQL',
    call: (probe) =>
      probe.query({
        text: `select rouse.enqueue('q00070', '1', dedupe_key => 'k', transaction_id => 'k', retry_limit => 1)`,
        values: [],
      }),
  },
  {
    name: 'messages enqueued by views of the previous release',
    call: (probe) =>
      probe.query({
        text: `select rouse.enqueue_v1('q00070', '1'::text), rouse.enqueue_v1('q00070', '1'::json), rouse.enqueue_v1('q00070', '1'::jsonb)`,
        values: [],
      }),
  },
  {
    name: 'a message cancelled by SQL, and one that does not exist',
    call: (probe) =>
      probe.query({
        text: `select rouse.cancel(rouse.enqueue('q00070', '1')), rouse.cancel('019a0000-0000-7041-8000-000000000003')`,
        values: [],
      }),
  },
  {
    name: 'messages enqueued by one SQL call',
    call: (probe) =>
      enqueueMany(probe, [
        { queue: 'q00070', payload: {} },
        { queue: 'q00071', payload: {} },
      ]),
  },
  { name: 'a pop from the hot queue', call: (probe) => popFrom(probe, { queue: 'hot' }) },
  {
    name: 'a pop from the hot queue by the abandoned group',
    call: (probe) => popFrom(probe, { queue: 'hot' }, 'abandoned'),
  },
  { name: 'a pop from the cold queue', call: (probe) => popFrom(probe, { queue: 'cold' }) },
  { name: 'a pop that finds nothing', call: (probe) => popFrom(probe, { queue: 'cold' }, 'g02') },
  {
    name: 'a pop from an unordered queue',
    call: (probe) => popFrom(probe, { queue: 'loose' }),
    prepare: (client) => push(client, [item('loose', 'p0')]),
  },
  {
    name: 'a pop from a queue with every limit',
    call: (probe) => popFrom(probe, { queue: 'loose' }),
    prepare: async (client) => {
      await push(
        client,
        Array.from({ length: 9 }, () => item('loose', 'p0')),
      )
      await client.query(
        `update rouse.queues set rate_limit = 3, rate_per_ms = 1000, partition_rate_limit = 3,
           partition_rate_per_ms = 1000, partition_in_flight_max = 3, in_flight_max = 1000000 where name = 'loose'`,
      )
    },
  },
  {
    name: 'a pop from a partition',
    call: (probe) => popFrom(probe, { queue: 'cold', partition: 'c302' }, 'g03'),
  },
  { name: 'a pop from a namespace', call: (probe) => popFrom(probe, { namespace: 'ns7' }) },
  {
    name: 'a pop from a task that one queue in ten has',
    call: (probe) => popFrom(probe, { task: 't7' }),
    grows: {
      why: 'it reads every queue of the task',
      pagesMax: (size) => 500 + (size.queues / 10) * 30,
    },
  },
  {
    name: 'a pop of retries from the hot queue',
    call: (probe) => popFrom(probe, { queue: 'hot' }, 'g02'),
  },
  {
    name: 'a pop of a retry from a partition whose messages expire',
    call: (probe) => popFrom(probe, { queue: 'cold', partition: 'c301' }),
    prepare: prepared(
      `update rouse.queues set ttl_ms = 1 where name = 'cold'`,
      `update rouse.redeliveries set announced = true where partition_id in (select id from rouse.partitions where name = 'c301')`,
      `update rouse.lanes set blocked_until = null where partition_id in (select id from rouse.partitions where name = 'c301')`,
    ),
  },
  {
    name: 'a pop of a large message',
    call: (probe) =>
      pop(probe, { source: { queue: 'q00070' }, group: 'g01', demands, bytesMax: 30 }),
  },
  {
    name: 'a pop that settles 100 drained lanes',
    call: (probe) => popFrom(probe, { queue: 'cold' }, 'g02'),
    prepare: prepared(
      `update rouse.lanes set ready = true where (partition_id, group_id) in (
         select l.partition_id, l.group_id from rouse.lanes l join rouse.groups g on g.id = l.group_id
         join rouse.queues q on q.id = g.queue_id where q.name = 'cold' and g.name = 'g02' order by l.partition_id limit 100)`,
    ),
  },
  withLease('an ack of a lease', (probe, { leaseId }) => ack(probe, [{ leaseId }])),
  withLease(
    'an ack of a lease of the cold queue',
    (probe, { leaseId }) => ack(probe, [{ leaseId }]),
    'cold',
  ),
  withLease('an ack of a failed message', (probe, lease) => ack(probe, [first(lease, 'failed')])),
  withLease('an ack of a message to retry', (probe, lease) => ack(probe, [first(lease, 'retry')])),
  withLease('an ack of a dead message', (probe, lease) => ack(probe, [first(lease, 'dlq')])),
  withLease('an ack of one message', (probe, lease) => ack(probe, [first(lease, 'completed')])),
  withLease('an ack with a result', (probe, lease) =>
    ack(probe, [{ ...first(lease, 'completed'), result: '{"sent": true}' }]),
  ),
  withLease('a transaction of an ack with a result', (probe, lease) =>
    transaction(probe, { acks: [{ ...first(lease, 'completed'), result: '1' }], pushes: [] }),
  ),
  withLease('a report of progress', (probe, { leaseId, partitionId, messages }) => {
    const { id, seq } = messages[0] as Lease['messages'][number]
    return reportProgress(probe, [{ id, leaseId, partitionId, seq, progress: '1' }])
  }),
  {
    name: 'a pop with a lease per message',
    call: (probe) =>
      pop(probe, {
        source: { queue: 'hot' },
        group: 'g01',
        demands: [{ batch: 10, partitions: 2, holder: 'test', leasePerMessage: true }],
      }),
  },
  withLease('a message of a lease by its key', (probe, { leaseId, partitionId }) =>
    findHeld(probe, [{ leaseId, partitionId, transactionId: 'none' }]),
  ),
  withLease('an extension of a lease', (probe, { leaseId }) =>
    extend(probe, [{ leaseId, durationMs: 60_000 }]),
  ),
  withLease('a release of a lease', (probe, { leaseId }) => release(probe, [leaseId])),
  withLease('an ack inside a transaction of a consumer', (probe, lease) =>
    ackIn(probe, lease.leaseId, first(lease, 'completed').message),
  ),
  withLease(
    'an ack of a whole lease inside a transaction of a consumer',
    (probe, lease) => ackIn(probe, lease.leaseId, first(lease, 'completed').message),
    'hot',
    1,
  ),
  withLease('a transaction of an ack and a push', (probe, { leaseId }) =>
    transaction(probe, { acks: [{ leaseId }], pushes: [item('q00070', 'a')] }),
  ),
]
