// Messages are delivered when they are due: not earlier, and not much later. The allowed delay is ten times
// the limit of the bench.
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf } from '../support/http.ts'
import { pass, stateOf, untilWaiting, wakesDuring } from '../support/node-state.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const node = await sharedBroker()
const api = apiOf(node.url)
const slackMs = 500

test('of two hundred due times within three seconds none is early, lost or very late', async (t) => {
  const queue = unique()
  const dueAt = new Map<number, number>()
  const arrivedAt = new Map<number, number>()
  const consumers = Array.from({ length: 4 }, async () => {
    while (arrivedAt.size < 200) {
      const { status, body } = await api.pop(
        queue,
        '?wait=true&timeout=2000&batch=50&partitions=50&autoAck=true',
      )
      const now = Date.now()
      if (status === 200) for (const { data } of body.messages) arrivedAt.set(data, now)
    }
  })
  await untilWaiting(node, queue, 4)
  const wakes = await wakesDuring(node, async () => {
    const firstAt = Date.now() + 1_500
    const items = Array.from({ length: 200 }, (_, i) => {
      dueAt.set(i, firstAt + i * 15)
      return { queue, partition: `p${i % 40}`, payload: i }
    })
    // Most messages have an absolute time and share a few requests. The others have a delay, which counts
    // from the time of the database, and are pushed one by one.
    const absolute = items.slice(0, 160).map((item) => {
      return { ...item, runAt: new Date(dueAt.get(item.payload) ?? 0).toISOString() }
    })
    for (let i = 0; i < 160; i += 40) await api.push(...absolute.slice(i, i + 40))
    for (const item of items.slice(160)) {
      const delayMs = Math.max(1, (dueAt.get(item.payload) ?? 0) - Date.now())
      dueAt.set(item.payload, Date.now() + delayMs)
      await api.push({ ...item, delayMs })
    }
    await Promise.all(consumers)
  })
  const lateness = [...dueAt].map(([i, due]) => (arrivedAt.get(i) ?? 0) - due)
  const sorted = lateness.sort((x, y) => x - y)
  t.ok((sorted[0] ?? -1) >= 0, `the earliest came ${sorted[0]} ms after its time`)
  t.ok((sorted[197] ?? 0) < slackMs, `the 198th of 200 came ${sorted[197]} ms late`)
  t.ok((wakes.timer ?? 0) > 0, 'woken by timers')
  t.equal(wakes.fallback, 0, 'not by fallback polls')
})

test("delays follow the database's clock, even if it is an hour ahead", async (t) => {
  const database = await testDatabase(t)
  await database.advanceClock(3_600_000)
  const node = await startBroker(t, { database })
  const api = apiOf(node.url)
  await api.push({ queue: 'q', payload: 'first', delayMs: 1 }) // warms up the node and the database
  await api.pop('q', '?wait=true&timeout=5000&autoAck=true')
  const begun = performance.now()
  await api.push({ queue: 'q', payload: 'later', delayMs: 400 })
  const { body } = await api.pop('q', '?wait=true&timeout=5000')
  const tookMs = performance.now() - begun
  t.equal(body.messages[0].data, 'later')
  t.ok(tookMs >= 400 && tookMs < 400 + slackMs, `after ${tookMs} ms`)
  const { skewMs } = (await stateOf(node)).time
  t.ok(Math.abs(skewMs - 3_600_000) < 1_000, `skew ${skewMs} ms`)
})

test("delays follow the database's clock when it is set while the node runs", async (t) => {
  const database = await testDatabase(t)
  const node = await startBroker(t, { database })
  const api = apiOf(node.url)
  await api.push({ queue: 'q', payload: 1, delayMs: 600_000 })
  const waiting = api.pop('q', '?wait=true&timeout=20000&autoAck=true')
  await untilWaiting(node, 'q', 1)
  await database.advanceClock(600_000)
  t.equal((await waiting).body.messages[0].data, 1, 'due by the new clock')
  await database.advanceClock(-1_200_000)
  await eventually(async () => (await stateOf(node)).time.skewMs < -500_000)
  const begun = performance.now()
  await api.push({ queue: 'q', payload: 2, delayMs: 300 })
  t.equal((await api.pop('q', '?wait=true&timeout=5000')).body.messages[0].data, 2)
  const tookMs = performance.now() - begun
  t.ok(tookMs >= 300 && tookMs < 300 + slackMs, `after ${tookMs} ms`)
})

test('a retry is delivered after its delay, by a timer', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  const { body } = await api.pop(queue)
  const wakes = await wakesDuring(node, async () => {
    const begun = performance.now()
    await api.ack(body.messages[0], 'retry', { delayMs: 300 })
    const again = await api.pop(queue, '?wait=true&timeout=5000')
    const tookMs = performance.now() - begun
    t.match(again.body.messages, [{ data: 1, attempt: 1 }])
    t.ok(tookMs >= 300 && tookMs < 300 + slackMs, `after ${tookMs} ms`)
  })
  t.match(wakes, { timer: 1, fallback: 0 })
})

test('a failed message is redelivered after the retry delays of its queue', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { retryBackoffMs: [200, 400] } })
  await api.push({ queue, payload: 1 })
  let { body } = await api.pop(queue, '?wait=true&timeout=5000')
  for (const waitMs of [200, 400, 400]) {
    const begun = performance.now()
    await api.ack(body.messages[0], 'failed', { error: 'no' })
    body = (await api.pop(queue, '?wait=true&timeout=5000')).body
    const tookMs = performance.now() - begun
    t.ok(tookMs >= waitMs && tookMs < waitMs + slackMs, `${waitMs} ms took ${tookMs} ms`)
  }
})

test('the message of an expired lease reaches a waiter at once', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  const begun = performance.now()
  t.equal((await api.pop(queue, '?leaseSeconds=1')).status, 200)
  const again = await api.pop(queue, '?wait=true&timeout=10000')
  const tookMs = performance.now() - begun
  t.match(again.body.messages, [{ data: 1, attempt: 2 }])
  t.ok(tookMs >= 1_000 && tookMs < 1_000 + slackMs, `after ${tookMs} ms`)
})

test('a window buffer is delivered at its end, even to a waiter that came late', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { windowBuffer: 1 } })
  await api.push({ queue, payload: 1 })
  const begun = performance.now()
  await api.push({ queue, payload: 2 })
  await eventually(async () => (await stateOf(node)).time.looks > 0)
  await pass(600)
  const { body } = await api.pop(queue, '?wait=true&timeout=10000&batch=10')
  const tookMs = performance.now() - begun
  t.equal(body.messages.length, 2)
  t.ok(tookMs >= 1_000 && tookMs < 1_000 + slackMs, `after ${tookMs} ms`)
})

test('a queue with delayedProcessing delivers a message after the delay', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { delayedProcessing: 1 } })
  const begun = performance.now()
  await api.push({ queue, payload: 1 })
  const { body } = await api.pop(queue, '?wait=true&timeout=10000')
  const tookMs = performance.now() - begun
  t.equal(body.messages[0].data, 1)
  t.ok(tookMs >= 1_000 && tookMs < 1_000 + slackMs, `after ${tookMs} ms`)
})

test('messages that became due while every node was down are delivered once, after a restart', async (t) => {
  const database = await testDatabase(t)
  await database.freezeClock('2030-01-01T00:20:00Z')
  const first = await startBroker(t, { database })
  const api = apiOf(first.url)
  await api.push({ queue: 'held', payload: 'held' })
  t.equal((await api.pop('held', '?leaseSeconds=60')).status, 200)
  await api.push({ queue: 'later', payload: 'later', delayMs: 60_000 })
  await api.push({ queue: 'again', payload: 'again' })
  const failed = await api.pop('again')
  await api.ack(failed.body.messages[0], 'retry', { delayMs: 60_000 })
  await api.post('/schedules', { name: 's', queue: 'ticks', cron: '0 * * * *' })
  await first.stop()
  await database.advanceClock(3_600_000)

  const second = await startBroker(t, { database })
  const back = apiOf(second.url)
  for (const queue of ['held', 'later', 'again', 'ticks']) {
    const { status, body } = await back.pop(queue, '?wait=true&timeout=10000&batch=10')
    t.equal(status, 200, queue)
    t.equal(body.messages.length, 1, `${queue} once`)
    t.equal((await back.pop(queue)).status, 204, `${queue}: not twice`)
    await back.ack(body.messages[0])
  }
})
