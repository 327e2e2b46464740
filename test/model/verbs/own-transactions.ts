// Users' own transactions, which stay open during other calls.
import fc from 'fast-check'
import { end } from '../delivering.ts'
import type { OpenTransaction } from '../open-transaction.ts'
import { type Deed, must, nameOf, pick, type Scene, settle, verb } from '../verb.ts'
import { defaults, type Lease, partitionFor, type Scheduled } from '../world.ts'
import { type Item, isRefused, items, messageOf, numbered } from './producing.ts'
import { deliveryFor } from './supplying.ts'

const openMax = 3
let names = 0

async function openOne(scene: Scene, number: number): Promise<OpenTransaction> {
  const { transactions } = scene.world
  const open = pick(transactions, number)
  if (open !== undefined && (transactions.length >= openMax || number % 2 === 0)) return open
  names += 1
  const begun = await scene.product.begin(`tx${names}`)
  transactions.push(begun)
  return begun
}

/** An open transaction; if there is none, a new one that has enqueued a message. */
async function openWith(scene: Scene, number: number, drawn: Item): Promise<OpenTransaction> {
  const open = pick(scene.world.transactions, number)
  if (open !== undefined) return open
  const own = await openOne(scene, number)
  const item = enqueueable(scene, drawn)
  own.enqueued.push(await enqueue(scene, own, item))
  scene.lines.push(`enqueue in ${own.name} ${JSON.stringify(item)}`)
  return own
}

/** Without a priority, if the queue would refuse it. */
export function enqueueable(scene: Scene, drawn: Item): Item {
  const item = numbered(drawn)
  return isRefused(scene, [item]) ? { ...item, priority: undefined } : item
}

async function enqueue(scene: Scene, own: OpenTransaction, item: Item): Promise<Scheduled> {
  const { world } = scene
  const queue = nameOf(scene, item.queue)
  const runAt = item.runIn === undefined ? null : new Date(world.now + item.runIn)
  const delayMs = item.runIn === undefined ? (item.delayMs ?? null) : null
  const [row] = (await own.query(
    `select rouse.enqueue($1, $2::text, partition => $3, delay => $4::float8 * interval '1 millisecond', run_at => $5,
       dedupe_key => $6, headers => $7::json, trace_id => $8, priority => $9, retry_limit => $10, retry_backoff_ms => $11,
       ttl_ms => $12) as id`,
    [
      queue,
      item.payload,
      item.partition ?? null,
      delayMs,
      runAt,
      item.key ?? null,
      item.headers ?? null,
      item.traceId ?? null,
      item.priority ?? 0,
      item.retryLimit ?? null,
      item.retryBackoffMs ?? null,
      item.ttlMs ?? null,
    ],
  )) as [{ id: string }]
  return scheduledBySql(scene, item, row.id)
}

export function scheduledBySql(scene: Scene, item: Item, id: string): Scheduled {
  const { world } = scene
  const queue = nameOf(scene, item.queue)
  const { ordering } = world.queues.get(queue)?.options ?? defaults
  return {
    queue,
    partition: partitionFor(ordering, item.partition, item.priority),
    dueAt: world.now + Math.max(0, item.runIn ?? item.delayMs ?? 0),
    order: world.nextOrder(),
    origin: 'sql',
    message: messageOf(item, id, item.key),
  }
}

function endTransaction({ world }: Scene, own: OpenTransaction): void {
  world.transactions.splice(world.transactions.indexOf(own), 1)
  unlock({ world }, own)
  own.end()
}

function unlock({ world }: Pick<Scene, 'world'>, own: OpenTransaction): void {
  for (const lease of world.leases) if (lease.lockedBy === own) lease.lockedBy = undefined
}

export async function commit(scene: Scene, own: OpenTransaction): Promise<void> {
  const { world } = scene
  await own.query('commit')
  endTransaction(scene, own)
  if (!own.isFailed) {
    world.scheduled.push(...own.enqueued)
    for (const { lease, seqs } of own.acked) end(world, lease, seqs, { status: 'completed' })
  }
  await settle(scene)
}

async function rollBack(scene: Scene, own: OpenTransaction): Promise<void> {
  await own.query('rollback')
  endTransaction(scene, own)
  await settle(scene)
}

/** The messages of the lease as the transaction itself sees them: without those that it has completed. */
function heldIn(own: OpenTransaction, lease: Lease): number[] {
  const gone = own.acked.filter((one) => one.lease === lease).flatMap(({ seqs }) => seqs)
  return [...lease.left].filter((seq) => !gone.includes(seq))
}

const number = fc.nat(20)

export const ownTransactions = [
  verb({
    name: 'enqueue',
    weight: 6,
    args: fc.record({ number, item: items }),
    async run(scene, args): Promise<Deed> {
      const own = await openOne(scene, args.number)
      if (own.isFailed) return undefined
      const item = enqueueable(scene, args.item)
      own.enqueued.push(await enqueue(scene, own, item))
      return { did: `enqueue in ${own.name} ${JSON.stringify(item)}`, effect: 'done' }
    },
  }),
  verb({
    name: 'ack in',
    weight: 5,
    args: fc.record({ number, stale: fc.nat(9).map((n) => n === 0), whole: fc.boolean() }),
    async run(scene, args): Promise<Deed> {
      const { world } = scene
      const delivery = await deliveryFor(scene, args.number, args.stale)
      if (delivery === undefined) return undefined
      const own = await openOne(scene, args.number)
      const { lease, seq } = delivery
      const rows = world.leases.filter(({ id }) => id === lease.id)
      // The call would wait for the other transaction.
      if (own.isFailed || rows.some(({ lockedBy }) => lockedBy !== undefined && lockedBy !== own))
        return undefined
      const live = rows.filter((one) => one.expiresAt > world.now && (args.whole || one === lease))
      const seqsOf = (one: Lease) => heldIn(own, one).filter((held) => args.whole || held === seq)
      const wanted = live.filter((one) => seqsOf(one).length > 0)
      const did = `ack in ${own.name} ${lease.queue.name.slice(-1)}/${lease.partition.name} ${args.whole ? 'whole lease' : seq}`
      const text = 'select rouse.ack_in($1::text) as count'
      const count = await own.query(text, [args.whole ? lease.id : delivery.receipt]).then(
        ([row]) => (row as { count: number }).count,
        (error: Error & { code?: string }) => {
          must(error.code === 'RS409', `ack_in failed: ${error.message}`)
          return 0
        },
      )
      const heldCount = wanted.reduce((sum, one) => sum + seqsOf(one).length, 0)
      // A leaseId names a message only if the lease holds no other.
      const expected = args.whole && heldCount > 1 ? 0 : heldCount
      must(count === expected, `ack_in completed ${count} instead of ${expected}`)
      if (count === 0) {
        // PostgreSQL has aborted the transaction, and releases its locks before it responds to ROLLBACK.
        own.isFailed = true
        await own.query('rollback')
        unlock(scene, own)
        await settle(scene)
        return { did: `${did}: lease lost`, effect: 'refused' }
      }
      for (const one of rows) if (args.whole || one === lease) one.lockedBy = own
      own.acked.push(...wanted.map((one) => ({ lease: one, seqs: seqsOf(one) })))
      return { did, effect: 'done' }
    },
  }),
  verb({
    name: 'commit',
    weight: 4,
    args: fc.record({ number, item: items }),
    async run(scene, drawn): Promise<Deed> {
      const own = await openWith(scene, drawn.number, drawn.item)
      await commit(scene, own)
      return { did: `commit ${own.name}`, effect: own.isFailed ? 'refused' : 'done' }
    },
  }),
  verb({
    name: 'roll back',
    weight: 2,
    args: fc.record({ number, item: items }),
    async run(scene, drawn): Promise<Deed> {
      const own = await openWith(scene, drawn.number, drawn.item)
      await rollBack(scene, own)
      return { did: `roll back ${own.name}`, effect: 'done' }
    },
  }),
]
