// How the sidecar responds while a call waits in PostgreSQL, and how that call ends.
import { ack, poolExecutor, pop, push } from '@rouse/storage'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { item, pushOne, spec, startSidecar } from './support/start-sidecar.ts'

/** Long enough for a call without locks, even on a busy machine. */
const timeoutMs = 2_000

const demand = { batch: 1, partitions: 1, holder: 'test' }

/** Starts a sidecar, and an executor for calls that bypass the sidecar and have no deadline. */
async function start(t: Test) {
  const { sidecar, database } = await startSidecar(t, { timeoutMs })
  const direct = poolExecutor(database.pool)
  async function lease(partition: string, group = 'g'): Promise<string | undefined> {
    const request = { source: { queue: 'orders', partition }, group, demands: [demand] }
    return (await pop(direct, request)).leases[0]?.leaseId
  }
  return { sidecar, database, direct, lease }
}

test('a write that hangs has an unknown outcome and commits later; a write queued behind it is refused and never runs', async (t) => {
  const { sidecar, database, direct, lease } = await start(t)
  await push(direct, [
    item('orders', { partition: 'a' }),
    item('orders', { partition: 'b' }),
    item('orders', { partition: 'c' }),
  ])
  const leaseIds: string[] = []
  for (const partition of ['a', 'b', 'c']) leaseIds.push((await lease(partition)) as string)
  const barrier = await database.armBarrier('ack-lane-freed')
  const codes: Promise<string>[] = []
  const calls = () => sidecar.stats().batches['ack']?.calls
  for (const [i, leaseId] of leaseIds.entries()) {
    const acked = sidecar.submit({ kind: 'ACK', item: { leaseId } })
    codes.push(acked.then(String, ({ code }: { code: string }) => code))
    await eventually(() => calls() === Math.min(2, i + 1))
  }
  const [a, b, c] = await Promise.all(codes)
  t.same([a, b, c], ['outcome_unknown', 'outcome_unknown', 'database_unavailable'])
  await barrier.release()
  await sidecar.drain()
  t.equal(calls(), 2)
  const again = leaseIds.map((leaseId) => ({ leaseId }))
  t.same((await ack(direct, again)).rejected, [0, 1], 'the third lease is still held')
})

test('a push that gets no connection in time is refused and never stored', async (t) => {
  const { sidecar, database, lease } = await start(t)
  const taken = await Promise.all(Array.from({ length: 12 }, () => database.pool.connect()))
  await t.rejects(pushOne(sidecar, item('orders', { partition: 'a' })), {
    code: 'database_unavailable',
  })
  for (const client of taken) client.release()
  await sidecar.drain()
  t.equal(await lease('a'), undefined)
})

test('a pop that hangs is refused in time, and its late lease is released', async (t) => {
  const { sidecar, database, direct, lease } = await start(t)
  await push(direct, [item('orders', { partition: 'a' })])
  const barrier = await database.armBarrier('pop-locked')
  t.teardown(() => barrier.release())
  const autoAck = spec('orders', { group: 'other', autoAck: true })
  await Promise.all([
    t.rejects(sidecar.submit({ kind: 'POP', pop: spec('orders') }), {
      code: 'database_unavailable',
    }),
    t.rejects(sidecar.submit({ kind: 'POP', pop: autoAck }), { code: 'outcome_unknown' }),
  ])
  await barrier.release()
  t.ok(await eventually(() => lease('a')), 'the message can be popped again')
})
