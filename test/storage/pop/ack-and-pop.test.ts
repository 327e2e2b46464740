// ack_and_pop: the result of an ack and a pop in this order, in one transaction.
import { ack, ackAndPop, type Lease, pop, push } from '@rouse/storage'
import { type Test, test } from 'tap'
import {
  demand,
  finish,
  item,
  message,
  openStorage,
  type Storage,
  start,
} from '../support/storage.ts'
import { dumpTables } from '../support/table-dump.ts'

const request = { source: { queue: 'q' }, group: 'g', demands: [demand({})] }

/** A queue with three messages in two partitions, of which group g has leased one. */
async function prepare(t: Test, options: Record<string, unknown>) {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  await storage.set('q', options)
  const items = ['p', 'p', 'o'].map((partition, n) =>
    message('q', partition, n + 1, { id: `00000000-0000-7000-8000-00000000000${n}` }),
  )
  await push(storage.pool, items)
  const held = await storage.lease('q', { leaseMs: 1_000 })
  return { ...storage, held }
}

const tables = ['partitions', 'lanes', 'leases', 'redeliveries', 'attempts', 'dead_letters']

/** Results and tables as text, with lease ids, which are random, replaced by numbers. */
async function described(pool: Storage['pool'], result: unknown, leases: (Lease | undefined)[]) {
  const dump = await dumpTables(pool)
  const lines = [JSON.stringify(result), ...tables.flatMap((name) => dump[name] ?? [])]
  const numbered = lines.map((line) =>
    leases.reduce((text, lease, i) => text.replaceAll(lease?.leaseId ?? '-', `lease ${i}`), line),
  )
  return numbered.toSorted()
}

for (const [what, options, acks] of [
  ['of one message', {}, (held: Lease) => [item(held)]],
  ['of a failed message', {}, (held: Lease) => [item(held, 0, 'failed')]],
  ['of a lost lease', {}, (held: Lease) => [item(held), item(held)]],
  ['without ordering', { ordering: 'none' }, (held: Lease) => [item(held)]],
] as const) {
  test(`an ack ${what} and a pop in one call give what two calls give`, async (t) => {
    const [one, two] = [await prepare(t, options), await prepare(t, options)]
    const both = await ackAndPop(one.pool, { acks: acks(one.held), group: 'g', pop: request })
    const acked = await ack(two.pool, acks(two.held), 'g')
    const popped = await pop(two.pool, { ...request, durable: true })
    t.same(
      await described(one.pool, both, [one.held, both.popped?.leases[0]]),
      await described(two.pool, { acked, popped }, [two.held, popped.leases[0]]),
    )
  })
}

for (const [what, prepareFor, source, group] of [
  ['a group that does not exist yet', undefined, { queue: 'q' }, 'new'],
  ['a queue with maxInFlight', { maxInFlight: 5 }, { queue: 'q' }, 'g'],
  ['a namespace', undefined, { namespace: 'n' }, 'g'],
] as const) {
  test(`for ${what} the acks are applied, and the caller must pop separately`, async (t) => {
    const { held, pool } = await prepare(t, prepareFor ?? {})
    const both = await ackAndPop(pool, { acks: [item(held)], pop: { ...request, source, group } })
    t.match(both, { acked: { rejected: [] }, popped: undefined })
    t.same((await finish(pool, held)).rejected, [0], 'the message is acknowledged')
  })
}

test('if the pop fails, the acks are not applied', async (t) => {
  const { held, pool } = await prepare(t, {})
  const demands = [demand({ batch: 1, leaseMs: -1e15 }), demand({ batch: 1, leaseMs: -1e15 })]
  const both = ackAndPop(pool, { acks: [item(held)], pop: { ...request, demands } })
  await t.rejects(both)
  t.same((await finish(pool, held)).rejected, [])
})

test('the acks are on disk when the call returns, although a pop alone need not be', async (t) => {
  const { begin, held } = await prepare(t, {})
  const client = await begin()
  await client.query(`set local synchronous_commit = off`)
  const { popped } = await ackAndPop(client, { acks: [item(held)], pop: request })
  t.match(popped, { status: 'messages' })
  const { rows } = await client.query(`select current_setting('synchronous_commit') as level`)
  t.same(rows, [{ level: 'on' }])
})

test('a pop that finds nothing is reported as empty', async (t) => {
  const { lease, pool, send } = await openStorage(t)
  await send('q', 'p', [1])
  const held = await lease('q')
  const { acked, popped } = await ackAndPop(pool, { acks: [item(held)], pop: request })
  t.match(acked, { rejected: [], woken: [{ count: 0 }] })
  t.match(popped, { status: 'empty', leases: [] })
})
