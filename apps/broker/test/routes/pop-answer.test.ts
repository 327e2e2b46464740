// When the response to a pop cannot be built, nothing stays leased and no message blocks its partition
// forever.
import { randomBytes } from 'node:crypto'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { createPayloadCipher } from '../../src/encryption/payload-cipher.ts'
import { apiOf } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const key = randomBytes(32)
const { url, database, log } = await sharedBroker({
  env: { ROUSE_ENCRYPTION_KEY: key.toString('hex'), ROUSE_WORKERS: '1' },
})
const api = apiOf(url)
const { pool } = database

/** Makes a queue of these payloads. For an undefined payload, it stores one that cannot be decrypted. */
async function queueOf(payloads: readonly unknown[], options: object = {}): Promise<string> {
  const queue = unique()
  await api.post('/configure', {
    queue,
    options: { retryLimit: 1, retryBackoffMs: [0], ...options },
  })
  const broken = createPayloadCipher([key]).seal({ queue, id: 'other' }, '1')
  for (const payload of payloads) {
    const { body } = await api.push({ queue, payload: payload ?? 'broken' })
    if (payload === undefined) await store(body[0].message_id, broken)
  }
  return queue
}

function store(id: string, payload: string) {
  return pool.query(
    'update rouse.messages set payload = $2 where rouse.message_id(id, partition_id, seq) = $1',
    [id, payload],
  )
}

async function leases(): Promise<number> {
  return (await pool.query('select from rouse.leases')).rowCount ?? 0
}

const dataOf = ({ body }: { body: { messages: { data: unknown }[] } }) =>
  body.messages.map(({ data }) => data)

test('a message that cannot be decrypted fails alone, and the others of its pop are delivered', async (t) => {
  const queue = await queueOf([1, undefined, 3])
  const popped = await api.pop(queue, '?batch=3')
  t.same(dataOf(popped), [1, 3])
  for (const message of popped.body.messages) await api.ack(message)
  t.match(await api.pop(queue), { status: 500, body: { code: 'internal' } })
  const { body } = await api.get(`/dlq?queue=${queue}`)
  t.match(body.messages, [
    {
      undecrypted: true,
      history: [{ errorCode: 'message_unreadable' }, { errorCode: 'message_unreadable' }],
    },
  ])
  await api.push({ queue, payload: 4 })
  t.same(dataOf(await api.pop(queue, '?autoAck=true')), [4], 'the partition continues')
  t.equal(await leases(), 0)
})

test('a response that cannot be serialised releases its messages, and fails the one that caused it', async (t) => {
  const queue = await queueOf([1, 2, 3])
  const [, { id }] = (await api.get(`/messages?queue=${queue}`)).body.messages
  await pool.query(
    `update rouse.messages set created_at = 'infinity' where rouse.message_id(id, partition_id, seq) = $1`,
    [id],
  )
  t.match(await api.pop(queue, '?batch=3'), { status: 500, body: { code: 'internal' } })
  const delivered: unknown[] = []
  await eventually(async () => {
    const { status, body } = await api.pop(queue, '?batch=3')
    for (const message of status === 200 ? body.messages : []) {
      t.equal(message.attempt, 1, 'uncharged')
      delivered.push(message.data)
      await api.ack(message)
    }
    return delivered.length === 2
  })
  t.same(delivered, [1, 3])
  const { rows } = await pool.query(
    'select message_id from rouse.dead_letters where message_id = $1',
    [id],
  )
  t.equal(rows.length, 1, 'it was retried and dead-lettered')
  t.equal(await leases(), 0)
})

test('the acks of a pop are answered even if its messages cannot be', async (t) => {
  const queue = await queueOf([1, undefined])
  const [message] = (await api.pop(queue)).body.messages
  const { transactionId, partitionId, leaseId } = message
  const acks = [{ transactionId, partitionId, leaseId, status: 'completed' }]
  const answer = await api.post(`/pop/queue/${queue}`, { acks })
  t.match(answer, { status: 200, body: { messages: [], acks: [{ success: true }] } })
  t.equal(await leases(), 0)
})

test('a message that no key of this node decrypts is released uncharged, more slowly each time', async (t) => {
  const queue = await queueOf(['sealed elsewhere'])
  const [{ id }] = (await api.get(`/messages?queue=${queue}`)).body.messages
  const foreign = createPayloadCipher([randomBytes(32)]).seal({ queue, id }, '"later"')
  await store(id, foreign)
  const start = process.hrtime.bigint()
  for (let i = 0; i < 6; i += 1) {
    t.match(await api.pop(queue, '?wait=true&timeout=5000'), {
      status: 503,
      body: { code: 'encryption_unavailable' },
    })
  }
  t.ok(Number(process.hrtime.bigint() - start) / 1e6 > 1_000, 'six tries took more than a second')
  await eventually(async () => (await leases()) === 0)
  await store(id, '"later"')
  const popped = await api.pop(queue, '?wait=true&timeout=5000')
  t.match(popped.body.messages, [{ data: 'later', attempt: 1 }])
})

test('an internal error is logged without the contents of rows', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  await pool.query(
    `alter table rouse.queues add constraint no_secrets check (namespace <> 'secret')`,
  )
  const failed = await api.post('/configure', { queue, namespace: 'secret' })
  await pool.query('alter table rouse.queues drop constraint no_secrets')
  t.match(failed, { status: 500, body: { code: 'internal' } })
  // Wait for the right line: other tests log failed requests, too, and a line may arrive after the response.
  const text = await eventually(async () => {
    const failures = JSON.stringify(log.filter(({ msg }) => msg === 'request failed'))
    return /no_secrets/.test(failures) && failures
  })
  t.match(text, /23514/)
  t.notMatch(text, /Failing row/)
})
