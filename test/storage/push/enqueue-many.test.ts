// rouse.enqueue_many: several messages in one call of a user's transaction.
import { enqueueMany, promoteDue } from '@rouse/storage'
import { test } from 'tap'
import { openStorage, payloads, refusal, start } from '../support/storage.ts'

test('enqueue_many stores the messages in their order and returns their ids in it', async (t) => {
  const { begin, pool, rows, take } = await openStorage(t)
  const client = await begin()
  const ids = await enqueueMany(
    client,
    Array.from({ length: 20 }, (_, n) => ({ queue: n % 2 === 0 ? 'even' : 'odd', payload: n })),
  )
  await client.query('commit')
  t.same(
    await rows('select message_id as id, payload::int as n from rouse.scheduled order by id'),
    ids.map((id, n) => ({ id, n })),
  )
  await promoteDue(pool)
  const even = await take('even', { batch: 20 })
  t.same(payloads(even), [0, 2, 4, 6, 8, 10, 12, 14, 16, 18])
})

test('enqueue_many takes the fields of a push', async (t) => {
  const { freezeClock, rows, set } = await openStorage(t)
  await freezeClock(start)
  await set('q', { ordering: 'partition' })
  await rows('select rouse.enqueue_many($1)', [
    JSON.stringify([
      {
        queue: 'q',
        payload: { b: [1, null] },
        partition: 'p',
        delayMs: 1_500,
        dedupeKey: 'k',
        headers: { h: 1 },
        traceId: 't',
      },
      { queue: 'q', payload: null, runAt: new Date(start + 60_000), transactionId: 'old' },
      { queue: 'q', payload: 'x', partition: null, delayMs: null, headers: null, traceId: null },
    ]),
  ])
  const stored = await rows<{ headers: string }>(
    `select partition, payload, headers::text, transaction_id, trace_id,
       (extract(epoch from due_at - created_at) * 1000)::int as wait
     from rouse.scheduled order by id`,
  )
  t.match(stored, [
    {
      partition: 'p',
      payload: '{"b": [1, null]}',
      transaction_id: 'k',
      trace_id: 't',
      wait: 1_500,
    },
    { partition: 'Default', payload: 'null', headers: null, transaction_id: 'old', wait: 60_000 },
    { partition: 'Default', payload: '"x"', headers: null, transaction_id: null, wait: 0 },
  ])
  t.same(JSON.parse(stored[0]?.headers ?? ''), { h: 1 })
})

test('an empty array stores nothing', async (t) => {
  const { rows } = await openStorage(t)
  t.same(await rows(`select rouse.enqueue_many('[]')`), [])
})

const good = { queue: 'q', payload: 1 }

const refused = [
  ['no array', { queue: 'q' }, 'invalid_request', 'messages'],
  ['an array beyond the limit', Array(10_001).fill(good), 'invalid_request', 'messages'],
  ['an item that is no object', [good, 7], 'invalid_request', 'messages[1]'],
  ['an unknown field', [good, { ...good, dealyMs: 1 }], 'unknown_field', 'messages[1].dealyMs'],
  ['a number as queue', [{ ...good, queue: 7 }], 'invalid_request', 'messages[0].queue'],
  ['no queue', [{ payload: 1 }], 'invalid_name', 'messages[0].queue'],
  ['no payload', [good, good, { queue: 'q' }], 'invalid_payload', 'messages[2].payload'],
  ['an empty partition', [{ ...good, partition: '' }], 'invalid_name', 'messages[0].partition'],
  ['a negative delay', [{ ...good, delayMs: -1 }], 'invalid_delay', 'messages[0].delay'],
  ['a delay as text', [{ ...good, delayMs: '1' }], 'invalid_request', 'messages[0].delayMs'],
  ['a delay out of range', [{ ...good, delayMs: 1e300 }], 'invalid_request', 'messages[0]'],
  ['a time that is none', [{ ...good, runAt: 'soon' }], 'invalid_request', 'messages[0]'],
  ['a priority as text', [{ ...good, priority: '1' }], 'invalid_request', 'messages[0].priority'],
  ['half a priority', [{ ...good, priority: 1.5 }], 'invalid_request', 'messages[0]'],
  [
    'no such priority',
    [good, { ...good, priority: 10 }],
    'invalid_request',
    'messages[1].priority',
  ],
  ['no ttl', [{ ...good, ttlMs: 0 }], 'invalid_request', 'messages[0].ttlMs'],
  ['half a limit', [{ ...good, retryLimit: 0.5 }], 'invalid_request', 'messages[0].retryLimit'],
  ['a unique key', [{ ...good, unique: { key: 1 } }], 'invalid_request', 'messages[0].unique.key'],
  ['headers that are a list', [{ ...good, headers: [] }], 'invalid_headers', 'messages[0].headers'],
] as const

test('enqueue_many refuses a bad message, names it, and stores nothing', async (t) => {
  const { pool, rows } = await openStorage(t)
  for (const [what, messages, code, field] of refused) {
    const refusedBy = await refusal(enqueueMany(pool, messages as never))
    t.match(refusedBy, { state: 'RS400', detail: { code, field } }, what)
  }
  t.same(await rows('select from rouse.scheduled'), [])
})

test('a refused call can be undone alone with a savepoint', async (t) => {
  const { begin, rows } = await openStorage(t)
  const client = await begin()
  await enqueueMany(client, [good])
  await client.query('savepoint s')
  await t.rejects(enqueueMany(client, [good, { ...good, queue: '' }]))
  await client.query('rollback to s')
  await client.query('commit')
  t.equal((await rows('select from rouse.scheduled')).length, 1)
})

test('users find in a comment what each of their functions is for', async (t) => {
  const { rows } = await openStorage(t)
  const found = await rows<{ call: string; text: string | null }>(
    `select p.oid::regprocedure::text as call, obj_description(p.oid) as text from pg_proc p
     where p.pronamespace = 'rouse'::regnamespace and has_function_privilege('rouse_producer', p.oid, 'execute')`,
  )
  t.equal(found.length, 7)
  for (const { call, text } of found) t.ok(text !== null && text.length > 40, call)
  t.match(found.find(({ call }) => call.includes('enqueue_many'))?.text, /dedupeKey.*ttlMs/s)
})
