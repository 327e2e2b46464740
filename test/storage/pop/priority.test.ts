// Priorities: independent messages with a higher one are delivered first, strictly, over all nodes.
import {
  ack,
  cancelMessage,
  deadLetters,
  messageById,
  pop,
  promoteDue,
  purge,
  push,
  redrive,
  seek,
  stats,
} from '@rouse/storage'
import { type Test, test } from 'tap'
import { newId } from '../support/new-id.ts'
import { retainRound } from '../support/retain-round.ts'
import {
  demand,
  finish,
  item,
  message,
  openStorage,
  payloads,
  refusal,
  type Storage,
  start,
} from '../support/storage.ts'

/** A storage with a frozen clock, and a group `g` that has seen the queue `q`. */
async function opened(t: Test, options: Record<string, unknown> = {}) {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  await storage.set('q', options)
  await storage.take('q')
  /** Pushes independent messages of these priorities in one call; each payload names priority and place. */
  const add = async (...priorities: readonly number[]): Promise<string[]> => {
    const items = priorities.map((priority, i) =>
      message('q', undefined, `${priority}/${i}`, { id: newId(), priority }),
    )
    return (await push(storage.pool, items)).items.map(({ messageId }) => messageId)
  }
  return { ...storage, add }
}

async function drained({ take, pool }: Pick<Storage, 'take' | 'pool'>, batch = 1) {
  const came: unknown[] = []
  for (;;) {
    const popped = await take('q', { batch, partitions: 10 })
    if (popped.status === 'empty') return came
    came.push(...payloads(popped))
    for (const lease of popped.leases) await finish(pool, lease)
  }
}

for (const ordering of ['keyed', 'none']) {
  test(`higher priorities come first, and equal ones in order (ordering ${ordering})`, async (t) => {
    const storage = await opened(t, { ordering })
    const { add, send } = storage
    await send('q', 'named', ['named'])
    await add(0, 5, 1, 9, 5, 9)
    const came = await drained(storage)
    t.same(came.slice(0, 5), ['9/3', '9/5', '5/1', '5/4', '1/2'])
    t.same(new Set(came.slice(5)), new Set(['named', '0/0']))
  })
}

test('a message with a high priority overtakes everything that waits, again and again', async (t) => {
  const storage = await opened(t)
  const { add, lease, pool } = storage
  await add(0, 0, 1, 1)
  const came: unknown[] = []
  for (let i = 0; i < 5; i += 1) {
    await add(7)
    const got = await lease('q')
    came.push(...payloads(got))
    await finish(pool, got)
  }
  t.same(
    came,
    Array.from({ length: 5 }, () => '7/0'),
    'the others starve as long as it goes on',
  )
  t.same(await drained(storage), ['1/2', '1/3', '0/0', '0/1'])
})

test('a batch takes several priorities as one partition, and nothing of priority 0 beside them', async (t) => {
  const { add, take } = await opened(t)
  await add(0, 2, 8, 5, 0)
  t.same(payloads(await take('q', { batch: 10 })), ['8/2', '5/3', '2/1'])
  t.same(payloads(await take('q', { batch: 10 })), ['0/0', '0/4'])
})

test('several waiters of one pop get the highest first', async (t) => {
  const { add, pool } = await opened(t)
  await add(1, 3, 2, 0)
  const demands = [1, 2, 3, 4].map((n) => demand({ holder: `${n}` }))
  const { leases } = await pop(pool, { source: { queue: 'q' }, group: 'g', demands })
  t.same(payloads({ leases }), ['3/1', '2/2', '1/0', '0/3'])
})

test('a retry stays in its level, and comes before lower ones when it is due', async (t) => {
  const storage = await opened(t, { retryBackoffMs: [1_000] })
  const { add, advanceClock, lease, pool } = storage
  await add(5, 5, 1)
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.same(payloads(await lease('q')), ['5/1'], 'a message that waits for its retry delays no other')
  await advanceClock(1_000)
  await promoteDue(pool)
  await add(4)
  t.same(await drained(storage), ['5/0', '4/0', '1/2'])
})

test('with a retry and fresh messages in a level, no waiter gets a lower one', async (t) => {
  const { add, lease, pool } = await opened(t, { retryBackoffMs: [0] })
  await add(5, 5, 1)
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  const demands = [demand({ holder: 'a' }), demand({ holder: 'b' })]
  const first = await pop(pool, { source: { queue: 'q' }, group: 'g', demands })
  t.same(payloads(first), ['5/0'])
  const second = await pop(pool, { source: { queue: 'q' }, group: 'g', demands })
  t.same(payloads(second), ['5/1', '1/2'])
})

test('a delayed message keeps its priority', async (t) => {
  const storage = await opened(t)
  const { add, advanceClock, pool } = storage
  const [id] = (
    await push(pool, [message('q', undefined, 'late', { id: newId(), priority: 6, delayMs: 10 })])
  ).items.map(({ messageId }) => messageId)
  t.match(await messageById(pool, id as string), { partition: null, options: { priority: 6 } })
  await add(5, 7)
  await advanceClock(10)
  await promoteDue(pool)
  t.match(await messageById(pool, id as string), { partition: null, options: { priority: 6 } })
  t.same(await drained(storage), ['7/1', 'late', '5/0'])
})

test('a priority is refused where all partitions are ordered, and stores nothing', async (t) => {
  const { add, pool, rows, set } = await opened(t, { ordering: 'partition' })
  const refused = {
    state: 'RS400',
    detail: { code: 'invalid_request', field: 'priority', item: 2 },
  }
  const items = [message('q', undefined, 1), message('q', undefined, 2, { priority: 1 })]
  t.match(await refusal(push(pool, items)), refused)
  t.same(await rows('select from rouse.messages'), [])
  t.same(await rows('select from rouse.partitions'), [])
  await set('q', { ordering: 'keyed' })
  await add(1)
  await set('q', { ordering: 'partition' })
  t.match(await refusal(push(pool, items)), refused, 'also if the queue had priorities before')
  t.match(await refusal(add(1)), { state: 'RS400', detail: { item: 1 } })
})

test('what was scheduled with a priority is delivered after the ordering became stricter', async (t) => {
  const storage = await opened(t)
  const { advanceClock, pool, set } = storage
  await push(pool, [message('q', undefined, 'late', { priority: 6, delayMs: 10 })])
  await set('q', { ordering: 'partition' })
  await advanceClock(10)
  await promoteDue(pool)
  t.same(await drained(storage), ['late'])
})

test('no function shows the reserved partitions, and operators reach their messages', async (t) => {
  const storage = await opened(t)
  const { add, lease, pool, rows } = storage
  const [, high] = (await add(0, 9)) as [string, string]
  t.match((await stats(pool))[0], { partitions: 0, messages: 2, groups: [{ pending: 2 }] })
  t.match(await messageById(pool, high), { partition: null, options: { priority: 9 } })
  t.match(await cancelMessage(pool, high), { outcome: 'cancelled' })
  t.same(payloads(await lease('q')), ['0/0'])
  await add(8)
  await seek(pool, { queue: 'q', group: 'g', to: 'end' })
  t.same(await drained(storage), [])
  await seek(pool, { queue: 'q', group: 'g', to: new Date(0) })
  t.same(await drained(storage), ['8/0', '0/0'])
  const [again] = (await add(3)) as [string]
  await ack(pool, [item(await lease('q'), 0, 'dlq')])
  const letters = await deadLetters(pool, { queue: 'q', limit: 10 })
  t.match(letters.letters, [{ messageId: again, partition: null }])
  await add(2)
  await redrive(pool, { queue: 'q' })
  t.same(await drained(storage), ['3/0', '2/0'], 'a redrive keeps the priority')
  await add(1, 2)
  await purge(pool, 'q')
  t.same(await drained(storage), [])
  t.equal((await rows('select from rouse.partitions p where rouse.is_level(p.name)')).length, 9)
})

test('retention removes messages of priorities, and keeps their partitions', async (t) => {
  const storage = await opened(t)
  const { add, advanceClock, pool, rows, send } = storage
  await send('q', 'named', [1])
  await add(4, 9)
  await drained(storage)
  await advanceClock(30 * 86_400_000)
  await retainRound(pool)
  await retainRound(pool)
  t.same(await rows('select from rouse.messages'), [])
  t.same(
    await rows(`select string_agg(substr(name, 2), '' order by id) as left from rouse.partitions`),
    [{ left: '987654321' }],
  )
  await add(2, 3)
  t.same(await drained(storage), ['3/1', '2/0'])
})

test('a group that is created later gets priorities first, too', async (t) => {
  const { add, take } = await opened(t)
  await add(0, 4)
  t.same(payloads(await take('q', { group: 'later' })), ['4/1'])
})

test('limits of the group hold for messages with a priority, limits of partitions do not', async (t) => {
  const { add, take } = await opened(t, { maxInFlight: 3, maxInFlightPerPartition: 1 })
  await add(5, 5, 4, 3)
  t.same(payloads(await take('q', { batch: 10 })), ['5/0', '5/1', '4/2'])
  t.match(await take('q', { batch: 10 }), { status: 'empty' })
})

test('a pop that meets a locked higher lane takes nothing lower', async (t) => {
  const { add, armBarrier, take } = await opened(t)
  await add(9, 9, 5, 0)
  const popping = await armBarrier('pop-offered')
  const first = take('q')
  await popping.reached()
  t.match(await take('q', { batch: 10, partitions: 10 }), { status: 'contended', leases: [] })
  await popping.release()
  t.same(payloads(await first), ['9/0'])
  t.same(payloads(await take('q')), ['9/1'])
})

test('a pop takes what lies above a locked lane, and nothing below', async (t) => {
  const { add, begin, take } = await opened(t)
  await add(9, 5, 1)
  const other = await begin()
  await other.query(
    `select from rouse.lanes l join rouse.partitions p on p.id = l.partition_id
     where p.name = $1 for no key update of l`,
    ['\u001f5'],
  )
  t.same(payloads(await take('q', { batch: 10, partitions: 10 })), ['9/0'])
  t.match(await take('q', { batch: 10, partitions: 10 }), { status: 'contended' })
  await other.query('rollback')
  t.same(payloads(await take('q', { batch: 10, partitions: 10 })), ['5/1', '1/2'])
})

test('a level that gathers its window buffer is not ready: lower ones go first, and it comes before them after', async (t) => {
  const storage = await opened(t, { ordering: 'keyed', windowBuffer: 10 })
  const { add, advanceClock, pool, take } = storage
  const pass = async (ms: number) => {
    await advanceClock(ms)
    await promoteDue(pool)
  }
  await add(1, 0)
  await pass(9_000)
  await add(9)
  t.equal((await take('q')).status, 'empty', 'all three gather')
  await pass(1_000)
  t.same(payloads(await take('q')), ['1/0'], 'no message of this priority has come for 10 s')
  await pass(9_000)
  await add(2)
  t.same(await drained(storage), ['9/0', '0/1'])
  await pass(10_000)
  t.same(await drained(storage), ['2/0'])
})

test('a promotion in progress does not delay lower messages, and its message comes first afterwards', async (t) => {
  const storage = await opened(t)
  const { add, advanceClock, armBarrier, pool, take } = storage
  await add(1, 1, 1)
  await push(pool, [message('q', undefined, 'late', { priority: 9, delayMs: 10 })])
  await advanceClock(10)
  const promoting = await armBarrier('promote-taken')
  const promoted = promoteDue(pool)
  await promoting.reached()
  t.same(payloads(await take('q')), ['1/0'], 'it is not ready before the promotion commits')
  await promoting.release()
  t.match(await promoted, [{ queue: 'q', group: null, count: 1 }], 'and wakes waiters')
  t.same(payloads(await take('q')), ['late'])
})

for (const barrier of ['pop-begun', 'pop-lane-locked']) {
  test(`the first priority of a queue is seen by a pop at ${barrier}`, async (t) => {
    const { add, armBarrier, send, take } = await opened(t)
    await send('q', 'named', [1])
    const popping = await armBarrier(barrier)
    const popped = take('q')
    await popping.reached()
    await add(2)
    await popping.release()
    t.same(payloads(await popped), ['2/0'])
  })
}

test('two calls with the first priority of a queue run one after the other', async (t) => {
  const { add, armBarrier, rows, waiting } = await opened(t)
  const creating = await armBarrier('create-queues-locked')
  const first = add(1)
  await creating.reached()
  const second = add(2)
  await waiting()
  await creating.release()
  await Promise.all([first, second])
  t.equal((await rows('select from rouse.messages')).length, 2)
})

test('first priorities from several calls create nine partitions once', async (t) => {
  const { add, rows } = await opened(t)
  await Promise.all(Array.from({ length: 6 }, (_, i) => add(1 + i, 0)))
  t.same(
    await rows(`select string_agg(substr(name, 2), '' order by id) as levels from rouse.partitions
    where rouse.is_level(name)`),
    [{ levels: '987654321' }],
  )
  t.equal((await rows('select from rouse.messages')).length, 12)
})
