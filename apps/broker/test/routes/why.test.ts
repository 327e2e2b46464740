// One test per reason that `why` can give: the test creates a state over HTTP, and the response names the
// reason with its details.
import { startEmbeddedPostgres } from '@rouse/database'
import { eventually, type TestDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf } from '../support/http.ts'
import { untilWaiting } from '../support/node-state.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const node = await sharedBroker()
const api = apiOf(node.url)

const why = async (queue: string, query = '', at = api) =>
  (await at.get(`/queues/${encodeURIComponent(queue)}/why${query}`)).body
const codes = async (queue: string) =>
  (await why(queue)).reasons.map(({ code }: { code: string }) => code)
const configure = (queue: string, options: object) => api.post('/configure', { queue, options })

test('an unknown queue is 404', async (t) => {
  t.equal((await api.get(`/queues/${unique()}/why`)).status, 404)
})

test('empty: the queue has no messages', async (t) => {
  const queue = `${unique()}/with slash`
  await configure(queue, {})
  t.match(await why(queue), { queue, reasons: [{ code: 'empty', text: /is empty/ }] })
})

test('paused: comes first, whatever else applies', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  await api.pop(queue)
  await api.post(`/queues/${queue}/pause`)
  t.match((await why(queue)).reasons[0], {
    code: 'paused',
    text: /until it is resumed/,
    action: `POST /api/v1/queues/${queue}/resume`,
  })
  await api.post(`/queues/${queue}/resume`)
  t.notOk((await codes(queue)).includes('paused'))
})

test('no_consumers: no group has popped yet, or none does any more', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  t.match(await why(queue), {
    reasons: [{ code: 'no_consumers', ready: 2, text: /no consumer group .* all are kept/ }],
  })
  const { body } = await api.pop(queue, '?consumerGroup=g')
  await api.ack(body.messages[0])
  t.match(await why(queue, '?consumerGroup=g'), {
    consumerGroup: 'g',
    reasons: [{ code: 'no_consumers', consumerGroup: 'g', ready: 1, lastSeenAt: /Z$/ }],
  })
})

test('ready: consumers wait, but for another partition', async (t) => {
  const queue = unique()
  await api.push({ queue, partition: 'a', payload: 1 })
  const { body } = await api.pop(queue)
  await api.ack(body.messages[0])
  const waiting = api.pop(queue, '/partition/b?wait=true&timeout=3000')
  await untilWaiting(node, queue, 1)
  await api.push({ queue, partition: 'a', payload: 2 })
  t.match((await why(queue)).reasons, [{ code: 'ready', ready: 1, waiting: 1 }])
  await api.push({ queue, partition: 'b', payload: 3 })
  await waiting
})

test('all_leased: with the time at which the first lease expires', async (t) => {
  const queue = unique()
  await configure(queue, { leaseTime: 60 })
  await api.push(...[1, 2, 3].map((payload) => ({ queue, partition: 'p', payload })))
  await api.pop(queue)
  t.match((await why(queue)).reasons, [
    {
      code: 'all_leased',
      leasedLanes: 1,
      behind: 2,
      inFlight: 1,
      firstExpiresAt: /Z$/,
      holder: String,
      text: /All partitions with messages are leased, until 20.*2 messages are waiting behind 1/,
    },
  ])
  const [{ firstExpiresAt }] = (await why(queue)).reasons
  const leftMs = Date.parse(firstExpiresAt) - Date.now()
  t.ok(leftMs > 40_000 && leftMs <= 60_500, `${leftMs} ms`)
})

test('held_lane: with the failed message and the time of its next try', async (t) => {
  const queue = unique()
  await configure(queue, { retryBackoffMs: [60_000] })
  await api.push(
    { queue, partition: 'p', payload: 1, transactionId: 'bad one' },
    { queue, partition: 'p', payload: 2 },
  )
  const { body } = await api.pop(queue)
  await api.ack(body.messages[0], 'failed', { error: 'no such card', errorCode: 'CARD' })
  t.match((await why(queue)).reasons, [
    {
      code: 'held_lane',
      partition: 'p',
      transactionId: 'bad one',
      attempts: 1,
      behind: 1,
      errorCode: 'CARD',
      nextTryAt: /Z$/,
      messageId: body.messages[0].id,
      text: /held by message [0-9a-f-]{36}, which failed once \(no such card\) and is tried again at 20/,
    },
  ])
})

test('retry_later: with onFailure skip, failed messages wait for their retry', async (t) => {
  const queue = unique()
  await configure(queue, { retryBackoffMs: [60_000], onFailure: 'skip' })
  await api.push({ queue, payload: 1 })
  const { body } = await api.pop(queue)
  await api.ack(body.messages[0], 'failed')
  t.match((await why(queue)).reasons, [{ code: 'retry_later', count: 1, nextRetryAt: /Z$/ }])
})

test('not_due: all messages are scheduled for later', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1, delayMs: 60_000 })
  t.match((await why(queue)).reasons, [
    { code: 'not_due', scheduled: 1, nextDueAt: /Z$/, text: /Nothing is due before 20/ },
  ])
})

test('not_due: a message is due, but not in the queue yet', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1, delayMs: 200 })
  // Promotion leaves alone what another transaction has locked.
  const client = await node.database.pool.connect()
  t.teardown(() => client.release(true))
  await client.query('begin')
  await client.query('select from rouse.scheduled where queue = $1 for update', [queue])
  const reason = await eventually(async () => {
    const [first] = (await why(queue)).reasons
    return first.text.startsWith('Nothing is due') ? undefined : first
  })
  const text = /^1 message is scheduled\. The first was due at 20.*at any moment\.$/
  t.match(reason, { code: 'not_due', scheduled: 1, text })
})

test('gathering: a window buffer is open', async (t) => {
  const queue = unique()
  await configure(queue, { windowBuffer: 60 })
  await api.push({ queue, payload: 1 })
  t.equal((await api.pop(queue)).status, 204)
  t.match((await why(queue)).reasons, [{ code: 'gathering', partitions: 1, until: /Z$/ }])
})

test('size_limit and in_flight_limit: maxSize and maxInFlight are reached', async (t) => {
  const queue = unique()
  await configure(queue, { maxInFlight: 1, maxSize: 2, ordering: 'none' })
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  await api.pop(queue)
  t.match((await why(queue)).reasons, [
    { code: 'size_limit', size: 2, sizeMax: 2 },
    { code: 'in_flight_limit', inFlight: 1, maxInFlight: 1, firstExpiresAt: /Z$/ },
  ])
})

test('rate_limit: the group has used up its rate', async (t) => {
  const queue = unique()
  await configure(queue, { rate: { limit: 1, perMs: 60_000 }, ordering: 'none' })
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  await api.pop(queue, '?consumerGroup=mail')
  t.equal((await api.pop(queue, '?consumerGroup=mail')).status, 204)
  t.match((await why(queue)).reasons, [
    {
      code: 'rate_limit',
      consumerGroup: 'mail',
      limit: 1,
      perMs: 60_000,
      ready: 1,
      until: /Z$/,
      text: /^Group "mail" .* 1 in 60000 ms \(rate\): 1 message is waiting, and the next is delivered at 20/,
    },
  ])
})

test('partition_in_flight_limit and partition_rate_limit: limits of a partition are reached', async (t) => {
  const [full, rated] = [unique(), unique()]
  await configure(full, { maxInFlightPerPartition: 1, ordering: 'none' })
  await configure(rated, { partitionRate: { limit: 1, perMs: 60_000 }, ordering: 'none' })
  for (const queue of [full, rated]) {
    await api.push({ queue, payload: 1 }, { queue, payload: 2 }, { queue, payload: 3 })
    await api.pop(queue, '?consumerGroup=mail')
  }
  t.match((await why(full)).reasons, [
    {
      code: 'partition_in_flight_limit',
      consumerGroup: 'mail',
      partitions: 1,
      limit: 1,
      behind: 2,
      firstExpiresAt: /Z$/,
      text: /^Group "mail" holds .*\(maxInFlightPerPartition\): 2 messages are waiting/,
    },
  ])
  t.match((await why(rated)).reasons, [
    {
      code: 'partition_rate_limit',
      consumerGroup: 'mail',
      partitions: 1,
      limit: 1,
      perMs: 60_000,
      behind: 2,
      until: /Z$/,
      text: /\(partitionRate\): 2 messages are waiting/,
    },
  ])
})

test('priority: what waits behind higher ones, with the group', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 0 }, { queue, payload: 9, priority: 9 })
  await api.pop(queue, '?consumerGroup=mail&batch=1')
  await api.push({ queue, payload: 4, priority: 4 })
  const [reason] = (await why(queue)).reasons
  t.match(reason, {
    code: 'priority',
    consumerGroup: 'mail',
    prioritized: 1,
    topPriority: 4,
    behind: 1,
    text: /because of their priority, the highest is 4: 1 message is waiting behind them/,
  })
})

test('unique_key: a message that has started or is scheduled has it, with the group', async (t) => {
  const queue = unique()
  const reasons = async () =>
    (await why(queue)).reasons.filter(({ code }: { code: string }) => code === 'unique_key')
  const { body: first } = await api.push({ queue, payload: 1, unique: { key: 'customer-7' } })
  const [{ id }] = first
  t.same(await reasons(), [], 'it is ready, which the other reasons explain')
  const { body } = await api.pop(queue, '?consumerGroup=mail')
  t.match(await reasons(), [
    {
      consumerGroup: 'mail',
      key: 'customer-7',
      messageId: id,
      state: 'started',
      until: null,
      text: /which has started in group "mail", has the unique key "customer-7" until it has ended/,
      action: `GET /api/v1/messages/${id}`,
    },
  ])
  await api.ack(body.messages[0])
  t.same(await reasons(), [])
  const scheduled = { queue, payload: 1, delayMs: 60_000 }
  const window = { key: 'k', until: { windowMs: 3_600_000 } }
  const { body: pushed } = await api.push({ ...scheduled, unique: window })
  t.match(await reasons(), [
    { key: 'k', messageId: pushed[0].id, state: 'scheduled', until: /Z$/, text: /is scheduled/ },
  ])
})

test('in_progress: all messages are leased', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  await api.pop(queue)
  t.match((await why(queue)).reasons, [{ code: 'in_progress', inFlight: 1 }])
})

test('dead_letters: named in addition to empty', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  const { body } = await api.pop(queue)
  await api.ack(body.messages[0], 'dlq')
  t.same(await codes(queue), ['dead_letters', 'empty'])
})

test('a group that holds back retention is named, and so is one that no longer does', async (t) => {
  const hourMs = 3_600_000
  const idle = await startBroker(t, {
    instrumented: true,
    // One round of retention a day: with a shorter interval, the jump of the clock would count as time in
    // which no node ran.
    env: {
      ROUSE_IDLE_GROUP_SECONDS: String(48 * 3_600),
      ROUSE_RETENTION_INTERVAL_MS: String(24 * hourMs),
    },
  })
  const at = apiOf(idle.url)
  const of = async (group: string) => (await why('q', `?consumerGroup=${group}`, at)).reasons
  await at.push({ queue: 'q', payload: 1 }, { queue: 'q', payload: 2 })
  for (const group of ['gone', 'used']) await at.pop('q', `?autoAck=true&consumerGroup=${group}`)
  await idle.database.advanceClock(23 * hourMs)
  t.match(await of('gone'), [{ code: 'no_consumers' }], 'not before a day has passed')
  await idle.database.advanceClock(1.1 * hourMs)
  await at.pop('q', '?autoAck=true&consumerGroup=used')
  await eventually(async () => (await of('gone')).length === 2)
  t.match(await of('gone'), [
    { code: 'no_consumers' },
    {
      code: 'holds_retention',
      messages: 1,
      lastSeenAt: /Z$/,
      oldestAt: /Z$/,
      until: /Z$/,
      text: /^No request since 20.* keeps 1 message, the oldest of 20.*, until 20.* Delete the group if it is not needed/,
      action: 'DELETE /api/v1/groups/gone/queues/q',
    },
  ])
  await idle.database.advanceClock(24.1 * hourMs)
  await at.pop('q', '?consumerGroup=used')
  await eventually(async () =>
    (await of('gone')).some(({ code }: { code: string }) => code === 'idle_group'),
  )
  t.match((await of('gone'))[0], { code: 'idle_group', text: /may be removed before this group/ })
})

test('an unreachable database is reported as the reason', async (t) => {
  const server = await startEmbeddedPostgres()
  t.teardown(() => server.stop())
  const lonely = await startBroker(t, { database: { url: server.url } as TestDatabase })
  const at = apiOf(lonely.url)
  await at.push({ queue: 'q', payload: 1 })
  server.kill('SIGKILL')
  await eventually(async () => (await why('q', '', at)).reasons[0].code === 'database_down')
  t.match(await why('q', '', at), { reasons: [{ code: 'database_down', text: /does not answer/ }] })
})
