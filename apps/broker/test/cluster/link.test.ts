// How a node reacts to its peers: which events are hints, and which make it poll all its wait groups.
import type { WaitGroup, WakeHint } from '@rouse/protocol'
import { joinCluster } from '@rouse/storage'
import { eventually, type TestDatabase, testDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { systemClock } from '../../src/clock.ts'
import { ClusterLink, type LinkedHost } from '../../src/cluster/link.ts'
import { loadConfig } from '../../src/config/config.ts'
import { createLogger } from '../../src/log.ts'

const patience = { timeoutMs: 20_000 }
const hint: WakeHint = {
  queue: 'q',
  partition: 'p',
  group: null,
  namespace: 'n',
  task: null,
  count: 2,
}

async function startLink(t: Test, { url, pool }: TestDatabase, id: string) {
  const env = { ROUSE_DATABASE_URL: url, ROUSE_NODE_ID: id, ROUSE_GOSSIP_PORT: '0' }
  const heard: unknown[] = []
  const settles: ((() => void) | undefined)[] = []
  let interests: { version: number; groups: readonly WaitGroup[] } = { version: 0, groups: [] }
  let echoed = 0
  let contacts = 0
  const host: LinkedHost = {
    peerMet: () => {
      contacts += 1
    },
    heard: (one, settle) => {
      heard.push({ hint: one })
      settles.push(settle)
    },
    heardConfigured: (one) => heard.push({ configured: one }),
    heardEverything: () => heard.push('everything'),
    peersChanged: () => {},
    peersAreSilent: (areSilent) => heard.push({ areSilent }),
    interestEchoed: (version) => {
      echoed = version
    },
    interests: () => interests,
  }
  const link = new ClusterLink({
    config: loadConfig({ env, args: [] }).config,
    identity: await joinCluster(pool),
    pool,
    clock: systemClock,
    log: createLogger({ level: 'silent', node: id, process: 'test' }),
    host,
    timers: { expect: (dueAtMs) => heard.push({ dueAtMs }) },
    events: { clusterChanged: () => {}, wakes: undefined },
    keys: { readAgain: () => heard.push('keys') },
    onSuperseded: () => {},
  })
  t.teardown(() => link.stop())
  await link.start()
  /** The state of the other node, as this node sees it. */
  const state = () => link.stats().peers[0]?.state
  /** Gives the node these wait groups, and waits until its peers know them. */
  const wait = async (...groups: WaitGroup[]) => {
    interests = { version: interests.version + 1, groups }
    link.interestChanged(interests.version)
    await eventually(() => echoed === interests.version, patience)
  }
  return { link, heard, settles, state, wait, contacts: () => contacts }
}

/** Starts two linked nodes and records what the second one receives. */
async function startPair(t: Test) {
  const database = await testDatabase(t)
  const b = await startLink(t, database, 'b')
  const a = await startLink(t, database, 'a')
  await eventually(() => a.state() === 'alive' && b.state() === 'alive', patience)
  const atFirst = b.heard.splice(0)
  return { a, b, atFirst, database }
}

test('a peer that joins causes a poll, because it sent us no hints before', async (t) => {
  const { atFirst } = await startPair(t)
  t.ok(atFirst.includes('everything'))
})

test('contact is reported once, and not by a node that is alone', async (t) => {
  const database = await testDatabase(t)
  const b = await startLink(t, database, 'b')
  t.equal(b.contacts(), 0)
  const a = await startLink(t, database, 'a')
  await eventually(() => a.state() === 'alive' && b.state() === 'alive', patience)
  await a.link.stop()
  await eventually(() => b.state() === 'left', patience)
  await startLink(t, database, 'a')
  await eventually(() => b.state() === 'alive', patience)
  t.same([a.contacts(), b.contacts()], [1, 1])
})

test('a peer that leaves causes a poll and is not silent', async (t) => {
  const { a, b } = await startPair(t)
  await a.link.stop()
  await eventually(() => b.state() === 'left', patience)
  t.same(new Set(b.heard), new Set(['everything']))
})

test('a peer that becomes unreachable causes two polls and is silent', async (t) => {
  const { a, b, database } = await startPair(t)
  await a.link.stop({ leave: false })
  const listed = await database.pool.query(`select from rouse.nodes where id = 'a'`)
  t.equal(listed.rowCount, 1)
  await eventually(() => b.state() === 'suspect', patience)
  t.same(b.heard, ['everything', { areSilent: true }])
  await eventually(() => b.state() === 'dead', patience)
  t.same(b.heard, ['everything', { areSilent: true }, 'everything'])
})

test('each kind of hint is received as that kind', async (t) => {
  const { a, b } = await startPair(t)
  await b.wait({ source: { queue: 'q' }, group: 'g' })
  a.link.broadcast(hint, 'available')
  a.link.broadcast(hint, 'free')
  a.link.tellConfigured(hint, 7)
  a.link.tellScheduled('q', 1_234)
  a.link.tellKeysChanged()
  await eventually(() => b.heard.length === 5)
  const uncounted = { ...hint, count: 0 }
  t.same(
    new Set(b.heard),
    new Set([{ hint }, { hint: uncounted }, { configured: uncounted }, { dueAtMs: 1_234 }, 'keys']),
  )
})

test('a node without waiters gets no hint about messages, nor one whose waiters are served', async (t) => {
  const { a, b } = await startPair(t)
  a.link.broadcast(hint, 'available')
  await b.wait({ source: { queue: 'q' }, group: 'g' }, { source: { queue: 'other' }, group: 'h' })
  a.link.broadcast(hint, 'available', { served: new Set(['g']) })
  a.link.broadcast({ ...hint, group: 'h' }, 'free')
  const last = { ...hint, partition: 'last' }
  a.link.broadcast(last, 'available', { served: new Set(['h']) })
  await eventually(() => b.heard.length > 0, patience)
  t.same(b.heard, [{ hint: last }])
})

test('a node settles a hint only if it has waiters in every consumer group that peers expect', async (t) => {
  const { a, b } = await startPair(t)
  const hinted = async (more: Partial<WakeHint> = {}) => {
    const count = b.settles.length
    a.link.broadcast({ ...hint, ...more }, 'available')
    await eventually(() => b.settles.length > count, patience)
    return b.settles.at(-1) !== undefined
  }
  const queue = { source: { queue: 'q' }, group: 'g' }
  const partition = { source: { queue: 'q', partition: 'p' }, group: 'h' }
  const namespace = { source: { namespace: 'n' }, group: 'i' }
  await b.wait(queue, partition, namespace)
  t.ok(await hinted())
  t.ok(await hinted({ partition: null }))
  t.notOk(await hinted({ partition: 'else' }), 'h does not wait for this partition')
  t.ok(await hinted({ partition: 'else', group: 'g' }))
  await b.wait(queue, partition)
  t.notOk(await hinted(), 'peers still expect i')
  t.ok(await hinted({ group: 'h' }))
  const before = b.link.stats().gossip.hintDatagramsSent
  b.settles.at(-1)?.()
  await eventually(() => b.link.stats().gossip.hintDatagramsSent > before, patience)
})

test('a request to poll everything is sent several times', async (t) => {
  const { a, b } = await startPair(t)
  a.link.broadcastEverything()
  await eventually(() => b.heard.length >= 3, patience)
  t.same(new Set(b.heard), new Set(['everything']))
})
