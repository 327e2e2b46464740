// The shipped files for haproxy and nginx before three nodes: polls wait for their whole time, and restarting all
// nodes one after another fails no request.
// `npm run test:balancers` uses polls of 60 s.
import { eventually, freePort, programMissing, testDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { type BalancerName, balancers, startShippedBalancer } from '../support/balancers.ts'
import type { RunningBroker } from '../support/broker.ts'
import { startNode, statsOf, untilAllHeard } from '../support/cluster.ts'
import { apiOf } from '../support/http.ts'
import { PatientClient } from '../support/patient-client.ts'
import { nothingLeft, startRollingLoad } from '../support/rolling-load.ts'

const pollSeconds = Number(process.env.ROUSE_TEST_POLL_SECONDS ?? 3)
const timeout = 240_000 + 3_000 * pollSeconds
const patience = { timeoutMs: 60_000 }
/** More polls than one for each node, so that every node has some when it drains. */
const pollers = 9
/** From the push to the response, on a busy machine. */
const wakeMsMax = 2_000

for (const name of balancers) {
  test(`behind ${name}, a poll waits for ${pollSeconds} s, and a push ends another at once`, {
    timeout,
    skip: programMissing(name),
  }, async (t) => {
    const { cluster, url } = await startBehind(t, name)
    const api = apiOf(url)
    const startedAt = Date.now()
    const idle = api.pop('idle', `?wait=true&timeout=${pollSeconds * 1_000}`)
    const woken = api.pop('woken', `?wait=true&timeout=${pollSeconds * 1_000}&autoAck=true`)
    const waiting = async () =>
      (await Promise.all(cluster.map((node) => statsOf(node.url)))).reduce(
        (sum, stats) => sum + stats.waiting.total,
        0,
      )
    await eventually(async () => (await waiting()) === 2, patience)
    const pushedAt = Date.now()
    t.equal((await api.push({ queue: 'woken', payload: 1 })).status, 201)
    t.match((await woken).body.messages, [{ data: 1 }])
    t.ok(Date.now() - pushedAt < wakeMsMax, `woken after ${Date.now() - pushedAt} ms`)
    t.equal((await idle).status, 204)
    t.ok(Date.now() - startedAt >= pollSeconds * 1_000, 'the other poll waited for its whole time')
  })

  test(`behind ${name}, a rolling restart fails no request`, {
    timeout,
    skip: programMissing(name),
  }, async (t) => {
    const { cluster, ports, url } = await startBehind(t, name)
    const client = new PatientClient(url)
    t.teardown(() => client.close())
    const polls = startPolls(client)
    const load = await startRollingLoad(client)
    for (const [i, node] of cluster.entries()) {
      await load.morePushed(100)
      t.match(await node.stop(), { code: 0 }, `node ${i + 1} drained`)
      const again = await startNode(t, i, optionsOf(node, ports[i] ?? 0))
      // The next node may go when the balancer sends requests to this one.
      await eventually(async () => (await statsOf(again.url)).waiting.total > 0, patience)
    }
    await load.morePushed(100)
    await load.finish()
    const { finished, failures } = await polls.finish()
    t.same([...load.failures, ...failures], [], `${load.pushed.size} pushes, ${finished} polls`)
    t.equal(client.retries, 0, 'the balancer closed no connection without a response')
    t.equal(new Set(load.delivered).size, load.pushed.size)
    t.equal(load.delivered.length, load.pushed.size, 'each message was delivered once')
    t.match(await load.left(), nothingLeft)
  })
}

async function startBehind(t: Test, name: BalancerName) {
  const ports = [await freePort(), await freePort(), await freePort()]
  const cluster = await startOnPorts(t, ports)
  return { cluster, ports, url: await startShippedBalancer(t, name, ports) }
}

async function startOnPorts(t: Test, ports: readonly number[]): Promise<RunningBroker[]> {
  const database = await testDatabase(t, { instrumented: false })
  const cluster = await Promise.all(
    ports.map((port, i) => startNode(t, i, optionsOf({ database }, port))),
  )
  await untilAllHeard(cluster)
  return cluster
}

function optionsOf({ database }: Pick<RunningBroker, 'database'>, port: number) {
  // The time for which a node still serves is that of production.
  return { database, env: { ROUSE_PORT: String(port), ROUSE_DRAIN_DELAY_MS: '1000' } }
}

/** Polls that find nothing, one after another. */
function startPolls(client: PatientClient) {
  const failures: string[] = []
  let finished = 0
  let polling = true
  const path = `/api/v1/pop/queue/nothing?wait=true&timeout=${pollSeconds * 1_000}`
  async function poll(): Promise<void> {
    while (polling) {
      const { status, body } = await client.ask('GET', path).catch((error: Error) => {
        return { status: 0, body: error.message }
      })
      if (status === 204) finished += 1
      else failures.push(`poll: ${status} ${JSON.stringify(body)}`)
    }
  }
  const all = Promise.all(Array.from({ length: pollers }, poll))
  return {
    async finish() {
      polling = false
      await all
      return { finished, failures }
    },
  }
}
