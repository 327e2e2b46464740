// The test plan of seed document 001 (see ARCHITECTURE.md), optimised polling, except for items that seed 000
// covers. Each title ends with the number of its item. The state machine is tested with a virtual clock,
// everything else on a real node.
import { SharedStateManager } from '@rouse/shared-state'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf } from '../support/http.ts'
import { stateOf, untilWaiting, wakesDuring } from '../support/node-state.ts'
import { childrenOf } from '../support/process-tree.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const node = await sharedBroker()
const api = apiOf(node.url)
const { pool } = node.database

test('a waiting pop without messages is answered at its deadline (001-3)', async (t) => {
  const begun = performance.now()
  t.equal((await api.pop(unique(), '?wait=true&timeout=1500')).status, 204)
  const tookMs = performance.now() - begun
  t.ok(tookMs >= 1_500 && tookMs < 3_000, `${tookMs} ms`)
})

test('a waiting pop that finds a message returns at once (001-3)', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  const begun = performance.now()
  t.equal((await api.pop(queue, '?wait=true&timeout=30000')).status, 200)
  t.ok(performance.now() - begun < 1_000)
})

test('one notification wakes one of four waiters, and one of them gets the message (001-4, 001-6)', async (t) => {
  const queue = unique()
  const answers = Array.from({ length: 4 }, () => api.pop(queue, '?wait=true&timeout=2000'))
  await untilWaiting(node, queue, 4)
  const wakes = await wakesDuring(node, async () => {
    await pool.query(`select rouse.enqueue($1, '1')`, [queue])
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    t.equal(statuses.filter((status) => status === 200).length, 1)
  })
  t.equal(wakes.notify, 1)
})

test('a node that is woken by NOTIFY stays healthy, unlike in the seed (001-7)', async (t) => {
  const queue = unique()
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  await pool.query(`select rouse.enqueue($1, '1')`, [queue])
  t.equal((await waiting).status, 200)
  t.equal((await stateOf(node)).mode.mode, 'healthy')
})

test('a failed query makes the node aggressive (001-8)', async (t) => {
  const own = await startBroker(t)
  const waiting = apiOf(own.url).pop('q', '?wait=true&timeout=20000')
  await untilWaiting(own, 'q', 1)
  await own.database.pool.query(
    `alter function rouse.groups_with_work(text[], text[], text[], text[], text[]) rename to broken`,
  )
  await eventually(async () => (await stateOf(own)).mode.why.includes('fetch_error'), {
    timeoutMs: 15_000,
  })
  t.equal((await stateOf(own)).mode.mode, 'aggressive')
  await own.database.pool.query(`alter function rouse.broken rename to groups_with_work`)
  await apiOf(own.url).push({ queue: 'q', payload: 1 })
  t.equal((await waiting).status, 200, 'the waiter is still served')
})

/** A manager in aggressive mode, with one waiter and a virtual clock. */
function aggressiveManager() {
  let now = 0
  const manager = new SharedStateManager(
    { now: () => now, grant: () => {}, broadcast: () => {}, broadcastEverything: () => {} },
    { aggressivePollDurationMs: 60_000, aggressiveExitThreshold: 5, idleIntervalMs: 5_000 },
  )
  manager.registerSidecar(1)
  manager.setWaiting(1, { source: { queue: 'q' }, group: 'g' }, 1)
  manager.reportFault('fetch_error')
  return {
    mode: () => manager.getStats().mode.mode,
    advance: (ms: number) => {
      now += ms
    },
    /** Advances to the next fallback poll and runs it. */
    check: (outcome: 'empty' | 'error' | 'work') => {
      now = Math.max(now, manager.nextWakeAt())
      manager.tick()
      const keys = [...manager.dueForFallback().keys()]
      if (outcome === 'error') manager.fallbackFailed()
      else manager.fallbackResult(outcome === 'work' ? keys : [])
      if (outcome !== 'work') return
      // The worker pops the message and returns its grant.
      const grantId = manager.tryAcquireGroup(1, 'q/*/g')
      if (grantId !== undefined) manager.releaseGroup('q/*/g', grantId, 'messages')
    },
  }
}

test('errors between polls keep the node aggressive, however long ago it became so (001-9)', async (t) => {
  const { mode, advance, check } = aggressiveManager()
  for (let i = 0; i < 50; i += 1) {
    for (let quiet = 0; quiet < 4; quiet += 1) check('empty')
    check('error')
    advance(10_000)
  }
  t.equal(mode(), 'aggressive')
})

test('after a minute, five empty polls in a row end aggressive mode (001-10)', async (t) => {
  const { mode, advance, check } = aggressiveManager()
  for (let i = 0; i < 20; i += 1) check('empty')
  t.equal(mode(), 'aggressive', 'the minute has not passed')
  advance(60_000)
  check('empty')
  t.equal(mode(), 'healthy')
})

test('fewer than five empty polls do not end aggressive mode (001-10)', async (t) => {
  const { mode, advance, check } = aggressiveManager()
  advance(60_000)
  for (let i = 0; i < 4; i += 1) check('empty')
  t.equal(mode(), 'aggressive')
  check('empty')
  t.equal(mode(), 'healthy')
})

test('a poll that finds an unannounced message restarts the count of empty polls (001-11)', async (t) => {
  const { mode, advance, check } = aggressiveManager()
  advance(60_000)
  for (let i = 0; i < 4; i += 1) check('empty')
  check('work')
  for (let i = 0; i < 4; i += 1) check('empty')
  t.equal(mode(), 'aggressive')
})

test('a grant that no worker takes within 100 ms makes the node aggressive (001-11b)', async (t) => {
  const own = await startBroker(t, { env: { ROUSE_WORKERS: '1' } })
  const client = apiOf(own.url)
  const waiting = client.pop('q', '?wait=true&timeout=20000')
  await untilWaiting(own, 'q', 1)
  const [worker = 0] = childrenOf(own.child.pid as number)
  process.kill(worker, 'SIGSTOP') // stands for "all dispatchers are busy" in the seed
  await own.database.pool.query(`select rouse.enqueue('q', '1')`)
  await eventually(async () => {
    const { rows } = await own.database.pool.query('select from rouse.messages')
    return rows.length === 1
  })
  const begun = performance.now()
  await eventually(() => performance.now() - begun > 300)
  process.kill(worker, 'SIGCONT')
  t.equal((await waiting).status, 200, 'the message is not lost')
  const { mode, counters } = await stateOf(own)
  t.match(mode, { mode: 'aggressive' })
  t.ok(mode.why.includes('grant_untaken'))
  t.ok((counters.deliveryTimeouts ?? 0) >= 1)
})

test('a pop without wait=true returns at once (001-14)', async (t) => {
  const begun = performance.now()
  t.equal((await api.pop(unique())).status, 204)
  t.ok(performance.now() - begun < 500)
})
