// retryBackoff: delays that grow by a factor, instead of the ladder in retryBackoffMs.
import { ack, configure, promoteDue, reapExpired } from '@rouse/storage'
import { test } from 'tap'
import { item, openStorage, payloads, refusal, type Storage, start } from '../support/storage.ts'

async function change({ pool }: Storage, options: Record<string, unknown>) {
  return (await configure(pool, { queue: 'q', options })).options
}

const exponential = { type: 'exponential', baseMs: 1_000 }
const inForce = { ...exponential, factor: 2, maxMs: 604_800_000, jitter: false }

test('a failed message waits for a delay that grows by the factor, up to the maximum', async (t) => {
  const { advanceClock, freezeClock, lease, pool, send, set, take } = await openStorage(t)
  await freezeClock(start)
  await set('q', { retryBackoff: { ...exponential, factor: 3, maxMs: 20_000 }, retryLimit: 10 })
  await send('q', 'p', [1])
  for (const [failures, waitMs] of [1_000, 3_000, 9_000, 20_000, 20_000].entries()) {
    const held = await lease('q')
    t.equal(held.attempt, failures + 1)
    await ack(pool, [item(held, 0, 'failed')])
    await advanceClock(waitMs - 1)
    t.same(await promoteDue(pool), [])
    t.equal((await take('q')).status, 'empty')
    await advanceClock(1)
    t.equal((await promoteDue(pool)).length, 1)
  }
})

for (const options of [
  { retryBackoff: { type: 'exponential', baseMs: 60_000 } },
  { retryBackoffMs: [60_000] },
]) {
  const [name] = Object.keys(options)
  test(`a message whose lease expired is delivered again at once, whatever its ${name}`, async (t) => {
    const { advanceClock, freezeClock, lease, pool, rows, send, set, take } = await openStorage(t)
    await freezeClock(start)
    await set('q', { ...options, leaseTime: 10 })
    await send('q', 'p', [1, 2])
    await lease('q', { batch: 2 })
    await advanceClock(10_000)
    await reapExpired(pool)
    t.same(await rows('select due_at, attempt from rouse.redeliveries order by seq'), [
      { due_at: new Date(start + 10_000), attempt: 1 },
      { due_at: new Date(start + 10_000), attempt: 1 },
    ])
    t.same(payloads(await take('q', { batch: 2 })), [1], 'alone')
  })
}

test('a delay of the ack replaces it, and a retry has none', async (t) => {
  const { freezeClock, lease, pool, rows, send, set } = await openStorage(t)
  await freezeClock(start)
  await set('q', { retryBackoff: { type: 'exponential', baseMs: 60_000 }, onFailure: 'skip' })
  await send('q', 'p', [1, 2])
  await ack(pool, [item(await lease('q'), 0, 'failed', { delayMs: 5 })])
  await ack(pool, [item(await lease('q'), 0, 'retry')])
  t.same(await rows('select due_at from rouse.redeliveries order by seq'), [
    { due_at: new Date(start + 5) },
    { due_at: new Date(start) },
  ])
})

test('jitter shortens a delay by a random part: true by up to half, a number by up to this share', async (t) => {
  const { rows } = await openStorage(t)
  const delays = async (jitter: unknown, random: number) => {
    const [row] = await rows<{ ms: number[] }>(
      `select array(select rouse.backoff_ms($1, n, $2)::float8 from generate_series(1, 3) n order by n) as ms`,
      [JSON.stringify({ ...inForce, jitter }), random],
    )
    return row?.ms
  }
  t.same(await delays(false, 0.9), [1_000, 2_000, 4_000])
  t.same(await delays(true, 0), [1_000, 2_000, 4_000])
  t.same(await delays(true, 0.5), [750, 1_500, 3_000])
  t.same(await delays(true, 1), [500, 1_000, 2_000])
  t.same(await delays(1, 1), [0, 0, 0])
  t.same(await delays(0.1, 1), [900, 1_800, 3_600])
})

test('messages that fail at the same time come back at different times with jitter', async (t) => {
  const { freezeClock, pool, rows, send, set, take } = await openStorage(t)
  await freezeClock(start)
  await set('q', {
    retryBackoff: { ...exponential, baseMs: 600_000, jitter: true },
    ordering: 'none',
  })
  await send(
    'q',
    'p',
    Array.from({ length: 20 }, (_, n) => n),
  )
  const { leases } = await take('q', { batch: 20 })
  await ack(
    pool,
    leases.flatMap((lease) => lease.messages.map((_, at) => item(lease, at, 'failed'))),
  )
  const [spread] = await rows<{ times: string; least: number; most: number }>(
    `select count(distinct due_at) as times, extract(epoch from min(due_at)) * 1000 - $1 as least,
       extract(epoch from max(due_at)) * 1000 - $1 as most from rouse.redeliveries`,
    [start],
  )
  t.ok(Number(spread?.times) > 10, `${spread?.times} different times`)
  t.ok(Number(spread?.least) >= 300_000 && Number(spread?.most) <= 600_000)
})

test('the largest factor and number of attempts stay within the maximum', async (t) => {
  const { rows } = await openStorage(t)
  t.same(
    await rows(`select rouse.backoff_ms($1, 1001, 0.5)::float8 as ms`, [
      JSON.stringify({ ...inForce, factor: 100 }),
    ]),
    [{ ms: 604_800_000 }],
  )
  t.same(
    await rows(`select rouse.backoff_ms($1, 1001, 0.5)::float8 as ms`, [
      JSON.stringify({ ...inForce, factor: 1 }),
    ]),
    [{ ms: 1_000 }],
    'a factor of 1 keeps the delay',
  )
})

test('of retryBackoff and the ladder, the one set last counts', async (t) => {
  const storage = await openStorage(t)
  t.match(await change(storage, { retryBackoffMs: [7] }), {
    retryBackoffMs: [7],
    retryBackoff: null,
  })
  t.match(await change(storage, { retryBackoff: exponential }), {
    retryBackoff: inForce,
    retryBackoffMs: null,
  })
  const shown = await change(storage, { priority: 1 })
  t.match(shown, { retryBackoff: inForce, retryBackoffMs: null }, 'other options change neither')
  t.same(await change(storage, shown), shown, 'options can be sent back as they were shown')
  t.match(await change(storage, { retryBackoffMs: [8, 9] }), {
    retryBackoff: null,
    retryBackoffMs: [8, 9],
  })
  const ladder = await change(storage, { retryBackoff: null })
  t.match(ladder, { retryBackoffMs: [8, 9] }, 'null ends only what it names')
  t.same(await change(storage, ladder), ladder)
  await change(storage, { retryBackoff: exponential })
  t.match(await change(storage, { retryDelay: 5 }), { retryBackoff: null, retryBackoffMs: [5] })
  await change(storage, { retryBackoff: exponential })
  t.match(await change(storage, { retryBackoff: null }), {
    retryBackoff: null,
    retryBackoffMs: [0, 30_000, 300_000],
  })
  await change(storage, { retryBackoff: exponential })
  t.match(await change(storage, { retryBackoffMs: null }), {
    retryBackoff: null,
    retryBackoffMs: [0, 30_000, 300_000],
  })
})

test('a wrong retryBackoff is refused, as are both options in one request', async (t) => {
  const { pool } = await openStorage(t)
  const wrong: unknown[] = [
    1_000,
    'exponential',
    [],
    {},
    { type: 'exponential' },
    { type: 'linear', baseMs: 5 },
    { baseMs: 5 },
    ...[0, 1.5, -1, '5', 604_800_001].map((baseMs) => ({ type: 'exponential', baseMs })),
    ...[0.9, 101, '2', [2]].map((factor) => ({ ...exponential, factor })),
    ...[999, 604_800_001, 1_000.5, '5000'].map((maxMs) => ({ ...exponential, maxMs })),
    ...[-0.1, 1.1, 'full', {}].map((jitter) => ({ ...exponential, jitter })),
    { ...exponential, base: 5 },
  ]
  for (const retryBackoff of wrong) {
    const call = configure(pool, { queue: 'q', options: { retryBackoff } })
    t.match(
      await refusal(call),
      { state: 'RS400', detail: { code: 'invalid_option', field: 'retryBackoff' } },
      JSON.stringify(retryBackoff),
    )
  }
  const both = { retryBackoff: exponential, retryBackoffMs: [1] }
  t.match(await refusal(configure(pool, { queue: 'q', options: both })), {
    detail: { code: 'invalid_option', field: 'retryBackoff' },
  })
  const right = [
    { ...exponential, factor: 1.5, maxMs: 1_000, jitter: 0 },
    { ...exponential, factor: null, jitter: null },
  ]
  for (const retryBackoff of right) {
    await t.resolves(configure(pool, { queue: 'q', options: { retryBackoff } }))
  }
})
