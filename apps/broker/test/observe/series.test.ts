// The past of queues over HTTP: merged over nodes, and with a gap where a node did not run.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { startCluster, startNode, untilAllHeard } from '../support/cluster.ts'
import { apiOf } from '../support/http.ts'

type Api = ReturnType<typeof apiOf>

test('a series is the sum of all nodes, and names those that do not answer', async (t) => {
  const cluster = await startCluster(t, { nodes: 2, env: { ROUSE_WORKERS: '1' } })
  const [one, two] = cluster.map(({ url }) => apiOf(url)) as [Api, Api]
  await one.push({ queue: 'a', payload: 1 }, { queue: 'b', payload: 1 })
  await two.push({ queue: 'a', payload: 2 })
  const sumOf = async (api: Api, query: string) => {
    const { body } = await api.get(`/series?${query}`)
    return body.pushed.reduce((sum: number, value: number | null) => sum + (value ?? 0), 0)
  }
  for (const api of [one, two]) {
    await eventually(async () => (await sumOf(api, '')) === 3, { timeoutMs: 10_000 })
    t.equal(await sumOf(api, 'queue=a'), 2)
    t.equal(await sumOf(api, 'queue=unknown'), 0)
    t.equal(await sumOf(api, 'queue=a&scope=node'), 1)
  }
  const { body } = await one.get('/series?queue=a')
  t.match(body, { queue: 'a', scope: 'cluster', resolution: 'second', stepMs: 1_000 })
  t.equal(body.pushed.length, 3_600)
  t.equal(body.pushed[0], null, 'before the start of all nodes')
  // A busy machine may answer late once.
  await eventually(async () => (await one.get('/series')).body.nodes.at(-1) === 2)
  cluster[1]?.child.kill('SIGKILL')
  await cluster[1]?.exited
  t.match((await one.get('/series?queue=a')).body, { unreachable: [{ id: 'node-2' }] })
})

test('a restarted node shows a gap, not zeros', async (t) => {
  const [first, second] = await startCluster(t, { nodes: 2, env: { ROUSE_WORKERS: '1' } })
  if (first === undefined || second === undefined) return
  await apiOf(second.url).push({ queue: 'a', payload: 1 })
  await second.stop()
  const again = await startNode(t, 1, { database: first.database, env: { ROUSE_WORKERS: '1' } })
  await untilAllHeard([first, again])
  const api = apiOf(again.url)
  const own = (await api.get('/series?scope=node')).body
  t.equal(own.pushed.at(-30), null)
  const merged = (await api.get('/series')).body
  t.ok(merged.nodes.includes(1), 'steps that only the other node knows')
  t.ok(merged.nodes.includes(0))
})

test('invalid queries are refused', async (t) => {
  const api = apiOf((await startNode(t, 0, {})).url)
  for (const query of [
    'resolution=hour',
    'from=yesterday',
    'scope=all',
    'queue=',
    'from=2030-01-01T00:00:00Z&to=2029-01-01T00:00:00Z',
    'step=1',
  ]) {
    t.equal((await api.get(`/series?${query}`)).status, 400, query)
  }
  const { body } = await api.get('/series?from=2000-01-01T00:00:00Z&to=2000-01-02T00:00:00Z')
  t.same(body.pushed, [], 'nothing is kept from then')
})
