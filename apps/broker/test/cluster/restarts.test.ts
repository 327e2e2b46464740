// Nodes that are killed, stopped and restarted. Under load, all nodes are restarted one after another.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import type { RunningBroker } from '../support/broker.ts'
import { startCluster, startNode, statsOf, untilAllHeard } from '../support/cluster.ts'
import { freePortBase, startDevCluster, untilReady } from '../support/dev-cluster.ts'
import { apiOf, send } from '../support/http.ts'
import { PatientClient } from '../support/patient-client.ts'
import { killTree } from '../support/process-tree.ts'
import { startPushes } from '../support/pushes.ts'
import { nothingLeft, startRollingLoad } from '../support/rolling-load.ts'

const timeout = 240_000
const patience = { timeoutMs: 60_000 }
/** The limit of the bench on a quiet machine. This test allows three times as much. */
const deadMsMax = 5_500
/** Applies to times in the logs, so that slow requests of this test do not count. Measured: 60 to 354. */
const rejoinMsMax = 500

const peerOf = async (node: RunningBroker, id: string) =>
  (await statsOf(node.url)).peers.find((peer) => peer.id === id)

/** Returns the time at which a node last logged this event about the killed node. */
function loggedAt({ log }: RunningBroker, event: string): number {
  const news = log.findLast((one) => {
    return one.msg === 'peer changed state' && one.peer === 'node-1' && one.event === event
  })
  return Date.parse(news?.time as string)
}

test('a node that is killed with waiters and leases loses no message, and rejoins after a restart', {
  timeout,
}, async (t) => {
  const cluster = await startCluster(t, { nodes: 3 })
  const [a, b, c] = cluster as [RunningBroker, RunningBroker, RunningBroker]
  await apiOf(a.url).push(
    ...Array.from({ length: 20 }, (_, i) => ({ queue: 'q', partition: `p${i % 10}`, payload: i })),
  )
  const leasedAt = Date.now()
  const leased = await apiOf(a.url).pop('q', '?batch=6&partitions=3&leaseSeconds=2')
  t.equal(leased.body.messages.length, 6)
  const lost = send('GET', apiOf(a.url).at('/pop/queue/other?wait=true&timeout=60000'))
  lost.catch(() => {})
  const waiting = apiOf(b.url).pop('other', '?wait=true&timeout=60000&autoAck=true')
  const pushes = startPushes([a, a, b, c].map(({ url }) => url))
  await eventually(() => pushes.acknowledged(a.url) >= 50, patience)

  const killedAt = Date.now()
  await killTree(a.child)
  await t.rejects(lost)
  t.equal((await apiOf(c.url).push({ queue: 'other', payload: 'x' })).status, 201)
  t.equal((await waiting).status, 200, 'the other nodes still wake each other')
  await eventually(async () => (await statsOf(b.url)).mode.mode === 'aggressive', patience)
  t.match((await statsOf(b.url)).mode.why, ['peer_silent'])

  const got = new Set<number>()
  await eventually(async () => {
    const { status, body } = await apiOf(b.url).pop('q', '?batch=10&partitions=10&autoAck=true')
    if (status === 200) for (const { data } of body.messages) got.add(data)
    return got.size === 20
  }, patience)
  t.ok(
    Date.now() - leasedAt >= 2_000,
    'its leased messages were redelivered when the lease expired',
  )
  const { acknowledged, missing, gone, odd } = await pushes.drain(b.url)
  t.same(missing, [], `${acknowledged} acknowledged pushes, none lost`)
  t.same({ gone, odd }, { gone: [a.url], odd: [] }, 'pushes to the other nodes succeeded')
  for (const node of [b, c]) {
    await eventually(async () => (await peerOf(node, 'node-1'))?.state === 'dead', patience)
    const deadMs = loggedAt(node, 'dead') - killedAt
    t.ok(deadMs < 3 * deadMsMax, `marked dead ${deadMs} ms after it was killed`)
    t.match((await send('GET', `${node.url}/stats?scope=cluster`)).body, {
      totals: { nodes: 2 },
      unreachable: [{ id: 'node-1', state: 'dead', error: /^no gossip from it for [1-9]\d* s$/ }],
    })
  }

  const again = await startNode(t, 0, { database: b.database })
  const boundAt = again.log.find(({ msg }) => msg === 'gossip listens')?.time as string
  await eventually(async () => (await peerOf(b, 'node-1'))?.state === 'alive', patience)
  await eventually(async () => (await peerOf(c, 'node-1'))?.state === 'alive', patience)
  for (const node of [b, c]) {
    const afterMs = loggedAt(node, 'joined') - Date.parse(boundAt)
    t.ok(afterMs < rejoinMsMax, `heard ${afterMs} ms after it bound its socket`)
  }
})

test('a node that leaves does not count as a silent peer', { timeout }, async (t) => {
  const cluster = await startCluster(t, { nodes: 2 })
  const [a, b] = cluster as [RunningBroker, RunningBroker]
  t.match(await a.stop(), { code: 0 })
  await eventually(async () => (await peerOf(b, 'node-1'))?.state === 'left', patience)
  t.equal((await statsOf(b.url)).mode.mode, 'healthy')
  t.match((await send('GET', `${b.url}/stats?scope=cluster`)).body.unreachable, [])
  await untilAllHeard([b, await startNode(t, 0, { database: b.database })])
})

test('a rolling restart under load fails no request, and neither loses nor duplicates a message', {
  timeout,
}, async (t) => {
  const dev = await startDevCluster(t, { nodes: 3, port: freePortBase() + 700 })
  const { url, nodes } = await untilReady(dev)
  const client = new PatientClient(url)
  t.teardown(() => client.close())
  const load = await startRollingLoad(client)
  for (const [i, { pid }] of nodes.entries()) {
    await load.morePushed(50)
    process.kill(pid, 'SIGTERM')
    // Ask this node itself, not the balancer: the next node must not stop before this one is ready.
    await eventually(async () => {
      const now = (await dev.describe()).nodes[i]
      if (now === undefined || now.pid === pid) return false
      return (await send('GET', `${now.url}/ready`)).status === 200
    }, patience)
  }
  await load.morePushed(50)
  await load.finish()
  const { pushed, delivered } = load
  t.same(load.failures, [], 'every request was answered and every ack accepted')
  t.equal(new Set(delivered).size, pushed.size, `${pushed.size} pushed, none lost`)
  t.equal(delivered.length, pushed.size, 'none doubled')
  t.same(await load.left(), nothingLeft, 'no message and no lease is left')
  t.comment(`${pushed.size} messages, ${client.retries} requests retried`)
})
