// Results, progress and recorded attempts, and how the end of a message is noticed.
import {
  type AwaitedMessage,
  ack,
  ackIn,
  cancelMessage,
  deleteQueue,
  endedMessages,
  type Lease,
  messageById,
  newestGroup,
  purge,
  push,
  reapExpired,
  release,
  reportProgress,
  seek,
  transaction,
} from '@rouse/storage'
import { type Test, test } from 'tap'
import { untilNoRetry } from '../support/load.ts'
import { newId } from '../support/new-id.ts'
import { removeAll } from '../support/removal-steps.ts'
import { retainRound } from '../support/retain-round.ts'
import {
  item,
  message,
  openStorage,
  refusal,
  type Storage,
  seqs,
  start,
} from '../support/storage.ts'

/** A storage with a frozen clock and three messages, of which the group `g` has leased all. */
async function opened(t: Test, options: Record<string, unknown> = {}) {
  const storage = await openStorage(t)
  const { freezeClock, lease, pool, set } = storage
  await freezeClock(start)
  await set('q', options)
  const items = [1, 2, 3].map((value) => message('q', 'p', value, { id: newId() }))
  const ids = (await push(pool, items)).items.map(({ messageId }) => messageId)
  const held = await lease('q', { batch: 3, leaseMs: 10_000 })
  return { ...storage, ids: ids as [string, string, string], held }
}

const completions = { queue: 'q', group: '\u001f' }

function groupOf(found: Awaited<ReturnType<typeof messageById>>) {
  return found?.groups[0]
}

function awaited(id: string, newestId = 0): AwaitedMessage {
  return { id, groups: { newestId } }
}

function report(id: string, lease: Lease, place: number, progress: unknown) {
  const { leaseId, partitionId } = lease
  const seq = lease.messages[place]?.seq as number
  return { id, leaseId, partitionId, seq, progress: JSON.stringify(progress) }
}

async function resultCount({ rows }: Pick<Storage, 'rows'>): Promise<number> {
  return (await rows('select from rouse.results')).length
}

for (const ordering of ['partition', 'none']) {
  test(`accepted acks store their results, and rejected ones do not (ordering ${ordering})`, async (t) => {
    const storage = await opened(t, { ordering })
    const { advanceClock, held, ids, pool } = storage
    await advanceClock(1_000)
    const big = '{"n":123456789012345678901234567890}'
    const acked = await ack(pool, [
      item(held, 0, 'completed', { result: big }),
      item(held, 1),
      item(held, 0, 'completed', { result: '"too late"' }),
      { ...item(held, 2, 'completed', { result: '"stray"' }), leaseId: newId() },
    ])
    t.same(acked.rejected, [2, 3])
    t.match(acked.woken, [completions])
    t.match(groupOf(await messageById(pool, ids[0])), {
      status: 'completed',
      result: big,
      completedAt: start + 1_000,
      history: [{ attempt: 1, outcome: 'completed', holder: 'test', deliveredAt: start }],
    })
    t.match(groupOf(await messageById(pool, ids[1])), { result: null, history: [] })
    t.equal(await resultCount(storage), 1)
    t.same(
      (await ack(pool, [item(held, 2)])).woken.filter(({ group }) => group === '\u001f'),
      [],
    )
  })
}

test('a transaction stores the results of its acks, or nothing', async (t) => {
  const storage = await opened(t)
  const { held, ids, pool } = storage
  const stray = { ...item(held, 1), leaseId: newId() }
  const pushes = [message('next', 'p', 1)]
  const acks = [item(held, 0, 'completed', { result: '1' })]
  await t.rejects(transaction(pool, { acks: [...acks, stray], pushes }), { code: 'RS409' })
  t.equal(await resultCount(storage), 0)
  const dead = item(held, 1, 'dlq')
  const done = await transaction(pool, { acks: [...acks, dead], pushes })
  t.same(done.deadLettered, [1])
  t.match(done.woken[0], completions)
  t.equal(groupOf(await messageById(pool, ids[0]))?.result, '1')
})

test('results and progress of an encrypted queue are refused, and nothing is acknowledged', async (t) => {
  const storage = await opened(t)
  const { held, ids, pool, rows } = storage
  await rows(`update rouse.queues set encryption = true`)
  const acks = [item(held, 0, 'completed', { result: '1' }), item(held, 1)]
  t.match(await refusal(ack(pool, acks)), { state: 'RS400', detail: { field: 'result' } })
  t.match(await refusal(reportProgress(pool, [report(ids[0], held, 0, 1)])), {
    state: 'RS400',
    detail: { field: 'progress' },
  })
  t.same((await ack(pool, [item(held, 0), item(held, 1)])).rejected, [])
})

test('results go with their messages: by retention, purge and the removal of the queue', async (t) => {
  const storage = await opened(t, { completedRetentionSeconds: 60 })
  const { advanceClock, held, ids, pool, send, take } = storage
  const keep = async (lease: Lease) => {
    const acks = lease.messages.map((_, i) => item(lease, i, 'completed', { result: '1' }))
    t.same((await ack(pool, acks)).rejected, [])
  }
  await keep(held)
  t.match((await messageById(pool, ids[0]))?.keptUntil, new Date(start + 60_000))
  await advanceClock(59_000)
  await retainRound(pool)
  t.equal(await resultCount(storage), 3)
  await advanceClock(2_000)
  await retainRound(pool)
  t.equal(await resultCount(storage), 0)
  t.equal(await messageById(pool, ids[0]), undefined)

  await send('q', 'p', [4, 5])
  await keep((await take('q', { batch: 2 })).leases[0] as Lease)
  await purge(pool, 'q')
  await removeAll(storage)
  t.equal(await resultCount(storage), 0)

  await send('q', 'p', [6, 7])
  await keep((await take('q', { batch: 2 })).leases[0] as Lease)
  await deleteQueue(pool, 'q')
  await removeAll(storage)
  t.equal(await resultCount(storage), 0)
})

test('progress needs a live lease of that very message, and the last report counts', async (t) => {
  const storage = await opened(t)
  const { advanceClock, held, ids, pool } = storage
  t.same(
    await reportProgress(pool, [
      report(ids[0], held, 0, 10),
      report(ids[0], held, 0, 20),
      report(ids[0], held, 1, 'of another message'),
      report(ids[1], { ...held, leaseId: newId() }, 1, 'without a lease'),
    ]),
    [true, true, false, false],
  )
  t.match(groupOf(await messageById(pool, ids[0])), { progress: '20', progressAt: start })
  await ack(pool, [item(held, 0, 'completed', { result: '"done"' })])
  t.same(await reportProgress(pool, [report(ids[0], held, 0, 30)]), [false], 'it has ended')
  t.match(groupOf(await messageById(pool, ids[0])), { progress: '20', result: '"done"' })
  await advanceClock(10_000)
  t.same(await reportProgress(pool, [report(ids[1], held, 1, 40)]), [false], 'it has expired')
})

test('a report that began before its lease expired delays neither the reaper nor the next ack', async (t) => {
  const storage = await opened(t)
  const { advanceClock, armBarrier, held, ids, lease, pool } = storage
  const checked = await armBarrier('progress-checked')
  const late = reportProgress(pool, [report(ids[0], held, 0, 'late')])
  await checked.reached()
  await advanceClock(10_000)
  t.equal((await reapExpired(pool)).length > 0, true)
  const next = await lease('q', { leaseMs: 10_000 })
  t.same((await ack(pool, [item(next, 0, 'completed', { result: '"new"' })])).rejected, [])
  await checked.release()
  t.same(await late, [true])
  t.match(groupOf(await messageById(pool, ids[0])), { status: 'completed', result: '"new"' })
})

test('an ack with a result waits for a report in progress, and both are kept', async (t) => {
  const storage = await opened(t)
  const { begin, held, ids, pool, waiting } = storage
  const reporting = await begin()
  await reporting.query({
    text: `select * from rouse.report_progress($1, $2, $3, $4, $5)`,
    values: [[ids[0]], [held.leaseId], [held.partitionId], [held.messages[0]?.seq], ['50']],
  })
  const completed = [item(held, 0, 'completed', { result: '1' })]
  const acked = untilNoRetry(() => ack(pool, completed))
  await waiting()
  await reporting.query('commit')
  t.same((await acked).rejected, [])
  t.match(groupOf(await messageById(pool, ids[0])), { progress: '50', result: '1' })
})

test('with history all, every way to complete a message records the attempt', async (t) => {
  const storage = await opened(t, { history: 'all' })
  const { advanceClock, begin, held, ids, lease, pool, rows } = storage
  await advanceClock(500)
  const acked = await ack(pool, [item(held, 0)])
  t.match(acked.woken, [completions])
  t.match(groupOf(await messageById(pool, ids[0]))?.history, [
    { attempt: 1, outcome: 'completed', deliveredAt: start, endedAt: start + 500 },
  ])
  await ack(pool, [item(held, 1, 'completed', { result: '1' })])
  t.equal(groupOf(await messageById(pool, ids[1]))?.history.length, 1, 'one, with a result, too')
  const client = await begin()
  await ackIn(client, held.leaseId)
  await client.query('commit')
  t.equal(groupOf(await messageById(pool, ids[2]))?.history.length, 1, 'ack_in')
  await rows('select rouse.promote_ready(100)')
  const { items } = await push(
    pool,
    [4, 5].map((value) => message('q', 'p', value, { id: newId() })),
  )
  await storage.take('q', { autoAck: true })
  t.equal(groupOf(await messageById(pool, items[0]?.messageId as string))?.history.length, 1)
  const last = await lease('q')
  await ack(pool, [{ leaseId: last.leaseId }])
  t.equal(groupOf(await messageById(pool, items[1]?.messageId as string))?.history.length, 1)
})

test('completed attempts go with their messages', async (t) => {
  const storage = await opened(t, { history: 'all', completedRetentionSeconds: 60 })
  const { advanceClock, held, pool, rows } = storage
  await ack(pool, [item(held, 0), item(held, 1), item(held, 2)])
  t.equal((await rows('select from rouse.attempts')).length, 3)
  await advanceClock(61_000)
  await retainRound(pool)
  t.equal((await rows('select from rouse.attempts')).length, 0)
})

test('a completed message that a seek delivers again may still be released as a fresh one', async (t) => {
  const { held, lane, lease, pool } = await opened(t, { history: 'all' })
  await ack(pool, [item(held, 0), item(held, 1), item(held, 2)])
  await seek(pool, { queue: 'q', group: 'g', to: new Date(0) })
  const again = await lease('q', { batch: 3 })
  await release(pool, [again.leaseId])
  t.equal((await lane()).next, String(seqs(held)[0]))
})

test('a message has ended when every group at the request has ended it', async (t) => {
  const storage = await opened(t)
  const { held, ids, lease, pool, take } = storage
  const first = await newestGroup(pool, 'q')
  const [one] = ids
  const ended = (...messages: AwaitedMessage[]) => endedMessages(pool, messages)
  const byName = (name: string) => ({ id: one, groups: { name } })
  t.same(await ended(awaited(one), awaited(one, first), byName('g'), byName('none')), [])
  const other = await lease('q', { group: 'h', leaseMs: 60_000 })
  await ack(pool, [item(held, 0)])
  t.same(await ended(awaited(one), awaited(one, first), byName('g'), byName('h')), [1, 2])
  await ack(pool, [item(other, 0, 'dlq')])
  t.same(await ended(awaited(one), byName('h'), byName('none'), awaited(newId())), [0, 1, 3])
  await release(pool, [held.leaseId])
  t.match(await cancelMessage(pool, ids[2]), { outcome: 'cancelled' })
  t.same(await ended(awaited(ids[1]), awaited(ids[2])), [1])
  await take('q')
  await purge(pool, 'q')
  t.same(await ended(awaited(ids[1])), [0])
})

test('a message without any group, or scheduled, has not ended', async (t) => {
  const { freezeClock, pool } = await openStorage(t)
  await freezeClock(start)
  const { items } = await push(pool, [
    message('q', 'p', 1, { id: newId() }),
    message('q', 'p', 2, { id: newId(), delayMs: 1_000 }),
  ])
  t.equal(await newestGroup(pool, 'q'), 0)
  const ids = items.map(({ messageId }) => messageId)
  t.same(
    await endedMessages(
      pool,
      ids.map((id) => awaited(id)),
    ),
    [],
  )
  t.match(await cancelMessage(pool, ids[1] as string), { outcome: 'cancelled' })
  t.same(
    await endedMessages(
      pool,
      ids.map((id) => awaited(id)),
    ),
    [1],
  )
})

test('the last failure of a message wakes those who wait for its end', async (t) => {
  const { advanceClock, held, lease, pool } = await opened(t, { retryLimit: 0 })
  const failed = await ack(pool, [item(held, 0, 'failed')])
  t.match(failed.woken.at(-1), completions)
  await ack(pool, [item(held, 1), item(held, 2)])
  await push(pool, [message('q', 'p', 4)])
  await lease('q', { leaseMs: 1_000 })
  await advanceClock(1_000)
  t.match((await reapExpired(pool)).at(-1), completions)
})
