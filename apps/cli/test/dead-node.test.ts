// Every verb that shows the cluster names a dead node.
import { createServer } from 'node:http'
import { test } from 'tap'
import { plain, rouse, rouseOnTerminal, terminalMissing } from './support/rouse.ts'

const skip = await terminalMissing()
const env = { ROUSE_URL: await listen() }
const words = 'node-2 is dead: no gossip from it for 42 s'

test('the doctor distinguishes a dead node from one that does not answer', async (t) => {
  const { out, err } = await rouse(['doctor'], { env })
  const findings = JSON.parse(out) as { check: string; what: string; fix: string }[]
  t.match(
    findings.find(({ check }) => check === 'dead'),
    { state: 'warning', what: words, fix: /restart it/ },
  )
  t.match(
    findings.find(({ check }) => check === 'http'),
    { state: 'problem', what: 'node-3 is unavailable over HTTP: it answered 500' },
  )
  t.match(err, /1 problem found/, 'the dead node is a warning only')
})

test('top and stats show a dead node', { skip }, async (t) => {
  for (const args of [
    ['top', '--once'],
    ['stats', '--cluster'],
  ]) {
    const shown = plain((await rouseOnTerminal(args, { env })).out)
    t.match(shown, words, args.join(' '))
    t.match(shown, 'node-3 is unavailable: it answered 500')
  }
})

/** Serves the stats of a node that has one dead peer and one failing peer. */
async function listen(): Promise<string> {
  const own = {
    node: 'node-1',
    version: '1',
    uptime: 1,
    requests: 1,
    local_sidecars: 2,
    mode: { mode: 'healthy', why: [] },
    waiting: { total: 0 },
    wakes: { udp: 0, local: 0, ipc: 0, fallback: 0 },
    group_backoff: { groups_tracked: 0, groups_backed_off: 0 },
    peers: [{ id: 'node-2', state: 'dead' }],
  }
  const cluster = {
    nodes: [own],
    unreachable: [
      { id: 'node-2', state: 'dead', error: 'no gossip from it for 42 s' },
      { id: 'node-3', state: 'alive', error: 'it answered 500' },
    ],
    totals: { nodes: 1, waiting: 0, queries_per_second: {} },
  }
  const server = createServer(({ url = '' }, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(url.startsWith('/stats') ? cluster : { queues: [] }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}
