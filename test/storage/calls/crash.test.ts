// A call that is killed at any of its barriers has changed nothing, and a repetition of it succeeds. The
// names of the barriers are read from the functions, so that new barriers are tested automatically.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { migrationsDirectory } from '@rouse/database'
import { ack, type Executor, type Lease, pop, push, pushDirect, transaction } from '@rouse/storage'
import { test } from 'tap'
import { demand, item, message, openStorage, type Storage } from '../support/storage.ts'
import { dumpTables } from '../support/table-dump.ts'

interface Victim {
  /** The files whose barriers the call passes. */
  readonly files: readonly string[]
  readonly call: (storage: Storage, on: Executor, leases: readonly Lease[]) => Promise<unknown>
}

const born = () => [message('q', 'a', 'x'), message('q', 'born', 'x'), message('new', 'p', 'x')]

// Together these calls pass every barrier of their files.
const victims: Record<string, Victim> = {
  push: {
    files: ['push/push.sql'],
    call: ({ send }, on) => send('q', 'a', ['x'], on),
  },
  'push that delivers its message': {
    files: ['push/push_direct.sql'],
    call: (_, on) =>
      pushDirect(
        on,
        message('q', 'drained', 'x'),
        { leaseId: randomUUID(), group: 'other', holder: 'test' },
        undefined,
      ),
  },
  'push to many partitions': {
    files: ['push/push_general.sql', 'push/create_targets.sql'],
    call: (_, on) => push(on, born()),
  },
  'push of one key twice': {
    files: ['push/push_known.sql'],
    call: (_, on) =>
      push(
        on,
        [1, 2].map((n) => message('q', 'a', n, { transactionId: 'k' })),
      ),
  },
  pop: {
    files: ['pop/pop.sql'],
    call: ({ take }, on) => take('q', { on, group: 'other' }),
  },
  'pop of several lanes': {
    files: ['pop/pop_lanes.sql'],
    call: ({ take }, on) => take('q', { on, group: 'other', batch: 5, partitions: 3 }),
  },
  'pop of several waiters': {
    files: ['pop/pop_general.sql', 'queues/subscribe.sql'],
    call: (_, on) =>
      pop(on, {
        source: { queue: 'q' },
        group: 'born',
        demands: [demand({ batch: 2, partitions: 2 }), demand({ batch: 5 })],
      }),
  },
  ack: {
    files: ['ack/ack.sql'],
    call: (_, on, [lease]) => ack(on, [{ leaseId: lease?.leaseId as string }]),
  },
  'ack of one message': {
    files: ['ack/ack.sql'],
    call: (_, on, [lease]) => ack(on, [item(lease as Lease)]),
  },
  'ack of several': {
    files: ['ack/ack_general.sql'],
    call: (_, on, leases) => {
      const statuses = ['completed', 'failed', 'dlq'] as const
      return ack(
        on,
        leases.map((lease, i) => item(lease, 0, statuses[i % 3])),
      )
    },
  },
  'ack of several lanes': {
    files: ['ack/ack_lanes.sql'],
    call: (_, on, leases) =>
      ack(
        on,
        leases.map((lease) => item(lease)),
      ),
  },
  'ack that moves a dead letter': {
    files: ['ack/give_up.sql'],
    call: (_, on, [lease]) => ack(on, [item(lease as Lease, 0, 'dlq')]),
  },
  transaction: {
    files: ['ack/transaction.sql'],
    call: (_, on, leases) =>
      transaction(on, { acks: leases.map((lease) => item(lease)), pushes: born() }),
  },
}

function barriersOf(file: string): string[] {
  const text = readFileSync(`${migrationsDirectory}/functions/${file}`, 'utf8')
  return [...text.matchAll(/^\s*-- barrier: ([a-z0-9-]+)\s*$/gm)].map(([, name]) => name as string)
}

for (const [what, { files, call }] of Object.entries(victims)) {
  for (const name of files.flatMap(barriersOf)) {
    test(`a ${what} killed at ${name} has changed nothing and can be repeated`, async (t) => {
      const storage = await openStorage(t)
      const { armBarrier, pool, rows, take } = storage
      const leases = await prepare(storage)
      const before = await dumpTables(pool)
      const barrier = await armBarrier(name)
      const client = await pool.connect()
      client.on('error', () => {})
      const killed = call(storage, client, leases).then(
        () => 'answered',
        (error: { code?: string }) => error.code ?? 'connection lost',
      )
      const { pids } = await barrier.reached()
      await rows('select pg_terminate_backend($1, 5000)', [pids[0]])
      t.equal(await killed, '57P01')
      client.release(true)
      await barrier.release()
      t.same(await dumpTables(pool), before, 'all as before')
      await call(storage, pool, leases)
      t.notSame(await dumpTables(pool), before, 'the same call then has its effect')
      t.equal((await take('q', { partition: 'c' })).status, 'messages', 'no lock was left behind')
    })
  }
}

/** Three lanes with messages, of which group g has leased two. Dead letters go to another queue. */
async function prepare({ pool, set, take }: Storage): Promise<Lease[]> {
  await set('q', { deadLetterTo: 'dead' })
  await push(
    pool,
    ['a', 'b', 'c'].flatMap((partition) => [1, 2].map((n) => message('q', partition, n))),
  )
  await take('q', { group: 'other', partition: 'nowhere' })
  await push(pool, [message('q', 'drained', 'x')])
  await take('q', { group: 'other', partition: 'drained', autoAck: true })
  const leases: Lease[] = []
  for (const partition of ['a', 'b']) leases.push(...(await take('q', { partition })).leases)
  return leases
}
