// A request that waits on one node for a message to end is answered when another node ends the message.
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import type { RunningBroker } from '../support/broker.ts'
import { startCluster, startNode, statsOf } from '../support/cluster.ts'
import { apiOf } from '../support/http.ts'
import { untilWaiting, wakesDuring } from '../support/node-state.ts'
import { childrenOf, killTree } from '../support/process-tree.ts'

/** Intervals of polls that are too long for a poll to have found the end. */
const never = '600000'
const env = {
  POP_WAIT_IDLE_INTERVAL_MS: never,
  POP_WAIT_BASE_INTERVAL_MS: never,
  POP_WAIT_MAX_INTERVAL_MS: never,
  ROUSE_WRITE_TIMEOUT_MS: '60000',
  ROUSE_WORKERS: '1',
}
const timeout = 120_000
type Api = ReturnType<typeof apiOf>

/** Pushes through one node, and pops through another. */
async function popped(queue: string, from: Api, to: Api) {
  const { body } = await from.push({ queue, payload: 1 })
  const { messages } = (await to.pop(queue)).body
  return { id: body[0].id as string, receipt: messages[0].receipt as string }
}

test('the end of a message is announced to every node that waits for it', {
  timeout,
}, async (t) => {
  const database = await testDatabase(t)
  const cluster = await startCluster(t, { nodes: 3, database, env })
  const [nodeA, nodeB, nodeC] = cluster as [RunningBroker, RunningBroker, RunningBroker]
  const [a, b, c] = cluster.map(({ url }) => apiOf(url)) as [Api, Api, Api]

  await t.test('pushed on one node, awaited on two, acknowledged on a third', async (t) => {
    const { id, receipt } = await popped('q', a, c)
    const other = await popped('q', a, c)
    const path = `/messages/${id}?wait=true&timeout=60000`
    const waiting = [a.get(path), b.get(path), b.get(`/messages/${other.id}?wait=true`)]
    await untilWaiting(nodeA, 'q', 1)
    await untilWaiting(nodeB, 'q', 2)
    const wakes = await wakesDuring(nodeB, async () => {
      t.equal((await c.post('/ack', { receipt, result: { ok: true } })).status, 200)
      for (const answer of waiting.slice(0, 2)) {
        t.match(await answer, { status: 200, body: { state: 'completed', result: { ok: true } } })
      }
    })
    t.ok((wakes.udp ?? 0) >= 1)
    t.equal(wakes.fallback, 0)
    const again = await wakesDuring(nodeB, async () => {
      t.equal(
        (await c.del(`/messages/${(await a.push({ queue: 'q', payload: 2 })).body[0].id}`)).status,
        200,
      )
      t.equal((await c.post('/ack', { receipt: other.receipt, result: 1 })).status, 200)
      t.match(await waiting[2], { status: 200, body: { id: other.id } })
    })
    t.equal(again.fallback, 0)
  })

  await t.test('a push sends no hint to a node that waits only for an end', async (t) => {
    const { id, receipt } = await popped('quiet', a, a)
    const waiting = b.get(`/messages/${id}?wait=true&timeout=60000`)
    await untilWaiting(nodeB, 'quiet', 1)
    const before = (await statsOf(nodeB.url)).wakes.udp
    for (let n = 0; n < 5; n += 1) await a.push({ queue: 'quiet', payload: n })
    await a.post('/ack', { receipt, result: 1 })
    t.equal((await waiting).status, 200)
    t.equal((await statsOf(nodeB.url)).wakes.udp, (before ?? 0) + 1)
  })

  await t.test('a node that is killed between the commit and the hint', async (t) => {
    const { id, receipt } = await popped('killed', a, c)
    const waiting = b.get(`/messages/${id}?wait=true&timeout=60000`)
    await untilWaiting(nodeB, 'killed', 1)
    const barrier = await database.armBarrier('results-kept')
    const acked = c.post('/ack', { receipt, result: 'committed' })
    acked.catch(() => {})
    await barrier.reached()
    const [worker] = childrenOf(nodeC.child.pid as number) as [number]
    process.kill(worker, 'SIGSTOP')
    await barrier.release()
    await eventually(async () => {
      const { rowCount } = await database.pool.query(
        `select from rouse.results where result = '"committed"'`,
      )
      return rowCount === 1
    })
    await killTree(nodeC.child)
    await t.rejects(acked)
    t.match(await waiting, { status: 200, body: { result: 'committed' } })
  })

  await t.test('a node that drains answers with the present state', async (t) => {
    const { id } = await popped('drained', a, a)
    const waiting = b.get(`/messages/${id}?wait=true&timeout=60000`)
    await untilWaiting(nodeB, 'drained', 1)
    nodeB.child.kill('SIGTERM')
    const answer = await waiting
    t.match(answer, { status: 200, body: { id, state: 'leased' } })
    t.equal(answer.headers.get('connection'), 'close')
  })
})

test('without gossip, and without a hint, the end is noticed by a poll', { timeout }, async (t) => {
  const secret = (text: string) => ({ ROUSE_WORKERS: '1', ROUSE_GOSSIP_SECRET: text.repeat(32) })
  const database = await testDatabase(t)
  const nodeA = await startNode(t, 0, { database, env: secret('a') })
  const nodeB = await startNode(t, 1, { database, env: secret('b') })
  const [a, b] = [apiOf(nodeA.url), apiOf(nodeB.url)]
  for (const more of [{ result: 1 }, {}]) {
    const { id, receipt } = await popped('q', a, a)
    const waiting = b.get(`/messages/${id}?wait=true&timeout=60000`)
    await untilWaiting(nodeB, 'q', 1)
    const begun = performance.now()
    await a.post('/ack', { receipt, ...more })
    t.match(await waiting, { status: 200, body: { state: 'completed' } })
    const tookMs = Math.round(performance.now() - begun)
    t.ok(tookMs < 1_000 + 1_500, `answered after ${tookMs} ms; a busy machine gets 1.5 s more`)
  }
})
