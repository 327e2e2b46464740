// What rouse.enqueue accepts from the ways in which drivers and SQL write the call, and which order it keeps.
import { promoteDue } from '@rouse/storage'
import { test } from 'tap'
import { openStorage, payloads, refusal, start } from '../support/storage.ts'

const object = '{"a":1}'

const calls = [
  ['a literal', `select rouse.enqueue('q', '${object}')`, [], object],
  ['an untyped parameter', 'select rouse.enqueue($1, $2)', ['q', object], object],
  ['a text parameter', 'select rouse.enqueue($1::text, $2::text)', ['q', object], object],
  ['a json parameter', 'select rouse.enqueue($1, $2::json)', ['q', object], object],
  ['a jsonb parameter', 'select rouse.enqueue($1, $2::jsonb)', ['q', object], '{"a": 1}'],
  ['a varchar', 'select rouse.enqueue($1::varchar, $2::varchar)', ['q', object], object],
  ['json_build_object', `select rouse.enqueue('q', json_build_object('a', 1))`, [], '{"a" : 1}'],
  ['jsonb_build_object', `select rouse.enqueue('q', jsonb_build_object('a', 1))`, [], '{"a": 1}'],
  ['to_json', `select rouse.enqueue('q', to_json(1))`, [], '1'],
  ['names alone', `select rouse.enqueue(payload => '1', queue => 'q')`, [], '1'],
  ['names and parameters', 'select rouse.enqueue(payload => $2, queue => $1)', ['q', '1'], '1'],
  [
    'a literal and a named rest',
    `select rouse.enqueue('q', '1', partition => 'p', delay => '1 minute', transaction_id => 'k', headers => '{}', trace_id => 't')`,
    [],
    '1',
  ],
  [
    'a jsonb with jsonb headers',
    `select rouse.enqueue('q', '[]'::jsonb, headers => jsonb_build_object('h', 1))`,
    [],
    '[]',
  ],
  [
    'a json with json headers',
    `select rouse.enqueue('q', '[ ]'::json, headers => json_build_object('h', 1))`,
    [],
    '[ ]',
  ],
  [
    'a literal with jsonb headers',
    `select rouse.enqueue('q', '[ ]', headers => '{"h": 1}'::jsonb)`,
    [],
    '[]',
  ],
  [
    'the parameters of release 0.1.0 in their places, untyped',
    'select rouse.enqueue($1, $2, $3, $4, $5, $6, $7, $8)',
    ['q', object, 'p', '1 minute', null, 'k', '{"h":1}', 't'],
    object,
  ],
  [
    'every parameter in its place, untyped',
    'select rouse.enqueue($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)',
    ['q', object, null, null, null, 'k', '{"h":1}', 't', 3, 1, '{5,6}', 900, null, 'k'],
    object,
  ],
  [
    'every parameter in its place, literals',
    `select rouse.enqueue('q', '1', 'p', '1 minute', null, 'k', '{}', 't', 0, 1, '{5,6}', 900, null, null)`,
    [],
    '1',
  ],
  [
    'every parameter in its place, typed',
    `select rouse.enqueue('q'::text, '1'::jsonb, null::text, '1 minute'::interval, null::timestamptz, 'k'::text,
       '{}'::jsonb, 't'::text, 9::smallint, 1::int, array[5, 6], 900::bigint, null::jsonb, null::text)`,
    [],
    '1',
  ],
  [
    'options by name, literals',
    `select rouse.enqueue('q', '1', dedupe_key => 'k', priority => 5, retry_limit => 0, retry_backoff_ms => array[1000],
       ttl_ms => 60000, "unique" => null)`,
    [],
    '1',
  ],
  [
    'options by name, untyped parameters',
    'select rouse.enqueue($1, $2, priority => $3, retry_limit => $4, retry_backoff_ms => $5, ttl_ms => $6)',
    ['q', '1', 5, 0, [1_000, 2_000], 60_000],
    '1',
  ],
  [
    'options by name, with a json',
    `select rouse.enqueue('q', json_build_array(1), priority => 5, headers => '{"h": 1}')`,
    [],
    '[1]',
  ],
] as const

// One database for all calls: a database for each would cost more than the calls.

test('enqueue accepts a payload of any JSON type, however the call is written', async (t) => {
  const { rows } = await openStorage(t)
  for (const [what, call, values, stored] of calls) {
    await t.test(what, async (t) => {
      const [answer] = await rows<{ enqueue: string }>(call, values)
      t.same(await rows('delete from rouse.scheduled returning queue, payload, message_id'), [
        { queue: 'q', payload: stored, message_id: answer?.enqueue },
      ])
    })
  }
})

test('enqueue can be prepared with and without types', async (t) => {
  const { begin } = await openStorage(t)
  const client = await begin()
  for (const types of ['', '(text, text)', '(text, json)', '(text, jsonb)', '(unknown, unknown)']) {
    await client.query(`prepare send ${types} as select rouse.enqueue($1, $2, partition => 'p')`)
    await client.query(`execute send ('q', '7')`)
    await client.query('deallocate send')
    const { rows } = await client.query('delete from rouse.scheduled returning payload')
    t.same(rows, [{ payload: '7' }], types)
  }
})

test('a trigger enqueues the row it is called for', async (t) => {
  const { rows } = await openStorage(t)
  await rows(`create table orders (id int, note text);
    create function announce() returns trigger language plpgsql as $$
    begin
      perform rouse.enqueue('orders', to_jsonb(new));
      perform rouse.enqueue('orders', to_json(new));
      perform rouse.enqueue('orders', row_to_json(new)::text);
      return null;
    end $$;
    create trigger announces after insert on orders for each row execute function announce();
    insert into orders values (42, 'x')`)
  const sent = await rows<{ payload: string }>('select payload from rouse.scheduled order by id')
  t.same(
    sent.map(({ payload }) => JSON.parse(payload)),
    Array.from({ length: 3 }, () => ({ id: 42, note: 'x' })),
  )
})

test('a producer may call enqueue with each type of payload', async (t) => {
  const { begin } = await openStorage(t)
  const client = await begin()
  await client.query('set local role rouse_producer')
  for (const type of ['text', 'json', 'jsonb']) {
    await client.query(`select rouse.enqueue('q', '1'::${type})`)
  }
  t.pass('allowed')
})

test('the id of an enqueued message is a UUID of version 7 and of the present time', async (t) => {
  const { rows } = await openStorage(t)
  const [before] = await rows<{ ms: number }>(
    'select extract(epoch from clock_timestamp())::float8 * 1000 as ms',
  )
  const ids = await rows<{ id: string }>(
    `select rouse.enqueue('q', to_json(n))::text as id from generate_series(1, 200) n`,
  )
  const [after] = await rows<{ ms: number }>(
    'select extract(epoch from clock_timestamp())::float8 * 1000 as ms',
  )
  t.equal(new Set(ids.map(({ id }) => id)).size, 200)
  for (const { id } of ids) {
    t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const ms = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
    t.ok(ms >= Math.floor(before?.ms ?? 0) && ms <= Number(after?.ms), `${ms}`)
  }
  // The first 18 characters of an id are its time in microseconds. Calls of one session are microseconds
  // apart, so these times ascend.
  const times = ids.map(({ id }) => id.slice(0, 18))
  t.same(times, times.toSorted())
})

const refused = [
  ['text that is no JSON', 'invalid_payload', 'payload', `'q', '{"a":'::text`],
  ['a literal that is no JSON', 'invalid_payload', 'payload', `'q', 'hello'`],
  ['an empty text', 'invalid_payload', 'payload', `'q', ''`],
  ['no text', 'invalid_payload', 'payload', `'q', null::text`],
  ['no jsonb', 'invalid_payload', 'payload', `'q', null::jsonb`],
  [
    'a text beyond a MiB',
    'payload_too_large',
    'payload',
    `'q', to_json(repeat('x', 1048577))::text`,
  ],
  ['a jsonb beyond a MiB', 'payload_too_large', 'payload', `'q', to_jsonb(repeat('x', 1048577))`],
  ['a delay and a time', 'invalid_delay', 'delay', `'q', '1', delay => '1 hour', run_at => now()`],
  [
    'jsonb headers that are no object',
    'invalid_headers',
    'headers',
    `'q', '1'::jsonb, headers => '[]'::jsonb`,
  ],
  [
    'headers beyond 64 KiB',
    'payload_too_large',
    'headers',
    `'q', '1', headers => json_build_object('h', repeat('x', 65536))`,
  ],
  ['an empty trace id', 'invalid_name', 'traceId', `'q', '1', trace_id => ''`],
  [
    'a trace id beyond 255 bytes',
    'invalid_name',
    'traceId',
    `'q', '1', trace_id => repeat('x', 256)`,
  ],
  [
    'a control character in the trace id',
    'invalid_name',
    'traceId',
    `'q', '1', trace_id => e'a\\u0007'`,
  ],
  ['a priority beyond 9', 'invalid_request', 'priority', `'q', '1', priority => 10`],
  ['a negative priority', 'invalid_request', 'priority', `'q', '1', priority => -1`],
  ['both', 'invalid_request', 'priority', `'q', '1', partition => 'p', priority => 1`],
  ['an ordered queue', 'invalid_request', 'priority', `'ordered', '1', priority => 1`],
  ['a negative limit', 'invalid_request', 'retryLimit', `'q', '1', retry_limit => -1`],
  ['no delay', 'invalid_request', 'retryBackoffMs', `'q', '1', retry_backoff_ms => '{}'`],
  ['a null delay', 'invalid_request', 'retryBackoffMs', `'q', '1', retry_backoff_ms => '{null}'`],
  ['no time to live', 'invalid_request', 'ttlMs', `'q', '1', ttl_ms => 0`],
  [
    'two keys',
    'invalid_request',
    'dedupeKey',
    `'q', '1', dedupe_key => 'a', transaction_id => 'b'`,
  ],
  ['a unique key', 'invalid_request', 'unique.key', `'q', '1', "unique" => '{"key": 1}'`],
] as const

test('an invalid enqueue is refused with its code and field', async (t) => {
  const { rows, set } = await openStorage(t)
  await set('ordered', { ordering: 'partition' })
  for (const [what, code, field, call] of refused) {
    await t.test(what, async (t) => {
      const { detail, state } = await refusal(rows(`select rouse.enqueue(${call})`))
      t.equal(state, 'RS400')
      t.match(detail, { code, field })
    })
  }
  t.same(await rows('select from rouse.scheduled'), [])
})

test('enqueued messages keep their options and their priority', async (t) => {
  const { advanceClock, freezeClock, lease, pool, rows } = await openStorage(t)
  await freezeClock(start)
  await rows(`select rouse.enqueue('q', '"plain"')`)
  await rows(
    `select rouse.enqueue('q', '"own"', priority => 4, retry_limit => 0, retry_backoff_ms => array[5], ttl_ms => 60000)`,
  )
  await rows('select rouse.enqueue_many($1)', [
    JSON.stringify([{ queue: 'q', payload: 'many', priority: 7, retryBackoffMs: 5, ttlMs: null }]),
  ])
  await advanceClock(1_000)
  await promoteDue(pool)
  t.same(
    await rows(
      `select m.payload, o.retry_limit, o.retry_backoff_ms::int[], o.expires_at
       from rouse.message_options o join rouse.messages m using (partition_id, seq) order by m.payload`,
    ),
    [
      { payload: '"many"', retry_limit: null, retry_backoff_ms: [5], expires_at: null },
      {
        payload: '"own"',
        retry_limit: 0,
        retry_backoff_ms: [5],
        expires_at: new Date(start + 60_000),
      },
    ],
  )
  const came = [await lease('q'), await lease('q'), await lease('q')]
  t.same(came.flatMap(payloads), ['many', 'own', 'plain'])
})

test('headers of 64 KiB and a trace id of 255 bytes are accepted', async (t) => {
  const { rows } = await openStorage(t)
  await rows(
    `select rouse.enqueue('q', '1', headers => json_build_object('h', repeat('x', 65536 - 10)), trace_id => repeat('t', 255))`,
  )
  t.same(
    await rows(
      'select octet_length(headers) as headers, length(trace_id) as trace_id from rouse.scheduled',
    ),
    [{ headers: 65_536, trace_id: 255 }],
  )
})

test('two enqueues of one transaction keep their order even if the clock steps back between them', async (t) => {
  const { begin, freezeClock, pool, take } = await openStorage(t)
  await freezeClock(start)
  const client = await begin()
  await client.query(`select rouse.enqueue('q', '1')`)
  await client.query(`select rouse.enqueue('q', '"late 1"', delay => '1 second')`)
  await freezeClock(start - 60_000)
  // The time of the last enqueue is in a setting of the transaction. A rollback to a savepoint undoes it
  // together with the row.
  await client.query('savepoint s')
  await client.query(`select rouse.enqueue('q', '2')`)
  await client.query('rollback to s')
  await client.query(`set local datestyle = 'SQL, DMY'`)
  await client.query(`select rouse.enqueue('q', '2')`)
  await client.query(`select rouse.enqueue('q', '"late 2"', delay => '1 second')`)
  await client.query('commit')
  await freezeClock(start + 5_000)
  await promoteDue(pool)
  t.same(payloads(await take('q', { batch: 9 })), [1, 2, 'late 1', 'late 2'])
})

test('the time of the last enqueue does not outlive its transaction', async (t) => {
  const { begin, freezeClock, rows } = await openStorage(t)
  await freezeClock(start)
  const client = await begin()
  await client.query(`select rouse.enqueue('q', '1')`)
  await client.query('commit')
  await freezeClock(start - 60_000)
  await client.query(`select rouse.enqueue('q', '2')`)
  t.same(await rows('select due_at from rouse.scheduled order by id'), [
    { due_at: new Date(start) },
    { due_at: new Date(start - 60_000) },
  ])
})
