// A development cluster with invalid flags, folders or logs, and with nodes that die or hang.
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { DevCluster } from '../../src/dev/dev-cluster.ts'
import {
  freePortBase,
  newDataFolder,
  runStart,
  startDevCluster,
  untilReady,
} from '../support/dev-cluster.ts'
import { apiOf, send } from '../support/http.ts'

const port = freePortBase()
const patience = { timeoutMs: 60_000 }
const timeout = 240_000

for (const [flags, problem] of [
  [['--unknown'], 'unknown flag --unknown; npm start takes --nodes N, --port P, --data DIR'],
  [['foo'], 'unknown flag foo; npm start takes --nodes N, --port P, --data DIR'],
  [['--data'], '--data needs a value'],
  [['--data', '--port', '5'], '--data needs a value'],
  [['--data', ''], '--data must name a folder'],
  [['--nodes', '-1'], '--nodes must be a whole number from 1 to 16'],
  [['--nodes=1.5'], '--nodes must be a whole number from 1 to 16'],
  [['--nodes', '99'], '--nodes must be a whole number from 1 to 16'],
  [['--port', '4700.5'], '--port must be a whole number from 1 to 65495'],
  [['--port', '65530'], '--port must be a whole number from 1 to 65495'],
] as const) {
  test(`npm start ${flags.join(' ')} is refused in one line`, { timeout }, async (t) => {
    const { exited, output } = runStart(t, flags)
    t.equal(await exited, 1)
    t.equal(output(), `Rouse: ${problem}\n`, 'before anything is built')
  })
}

test('DevCluster refuses the values that npm start refuses', async (t) => {
  for (const wrong of [{ nodes: 1.5 }, { nodes: 17 }, { port: 4700.5 }, { port: 65_530 }]) {
    const options = { nodes: 3, port, dataDir: '/nowhere', say: () => {}, ...wrong }
    t.throws(() => new DevCluster(options), { code: 'bad_argument' })
  }
})

test('a data folder that cannot be created is refused in one line', { timeout }, async (t) => {
  for (const data of ['/proc/rouse', '/proc/rouse/deep', '/dev/null/rouse', '/dev/null']) {
    const { exited, output } = runStart(t, ['--data', data])
    t.equal(await exited, 1)
    t.match(output(), new RegExp(`^Rouse: --data ${data} cannot be used: \\w+: .*\\n$`, 'm'))
  }
})

test('a log file that cannot be written is refused in one line', { timeout }, async (t) => {
  const dataDir = await newDataFolder(t)
  mkdirSync(join(dataDir, 'node-1.log'))
  const { exited, output } = await startDevCluster(t, { nodes: 1, port, dataDir })
  t.equal(await exited, 1)
  t.match(output(), /^Rouse: --data .* cannot be used: EISDIR.*node-1\.log'\n$/m)
})

test('a start that hangs does not block stop', async (t) => {
  const dataDir = await newDataFolder(t)
  const file = join(dataDir, 'cluster.json')
  execFileSync('mkfifo', [file])
  const cluster = new DevCluster({ nodes: 1, port, dataDir, say: () => {}, startingMsMax: 10 })
  const starting = cluster.start()
  await t.rejects(cluster.stop(), {
    code: 'stuck',
    message: /took longer than .* and was abandoned/,
  })
  // Write asynchronously: this thread may still have to open the other end of the pipe.
  await Promise.all([writeFile(file, ''), starting])
})

test('a node that is killed during its first start is restarted', { timeout }, async (t) => {
  const cluster = await startDevCluster(t, { nodes: 1, port })
  const pid = await eventually(() => cluster.pidOf('--node-id=node-1') ?? false, {
    ...patience,
    intervalMs: 5,
  })
  process.kill(pid, 'SIGKILL')
  const { nodes, url } = await untilReady(cluster)
  t.match(cluster.output(), /node-1 exited \(SIGKILL\); restarting in one second/)
  t.not(nodes[0]?.pid, pid)
  t.equal((await fetch(`${url}/ready`)).status, 200)
})

test('a log that can no longer be written is reported once, and the node keeps running', {
  timeout,
}, async (t) => {
  const dataDir = await newDataFolder(t)
  symlinkSync('/dev/full', join(dataDir, 'node-1.log'))
  const cluster = await startDevCluster(t, { nodes: 1, port, dataDir })
  const { url } = await untilReady(cluster)
  t.equal((await fetch(`${url}/ready`)).status, 200)
  t.equal(cluster.output().match(/cannot write the log of node-1.*ENOSPC/g)?.length, 1)
})

test('the nodes listen on loopback only, whatever the environment says, and answer their waiters when they stop', {
  timeout,
}, async (t) => {
  const env = {
    ROUSE_HOST: '0.0.0.0',
    ROUSE_GOSSIP_HOST: '0.0.0.0',
    ROUSE_ADVERTISE_URL: 'http://elsewhere:1',
    ROUSE_GOSSIP_ADVERTISE: 'elsewhere',
    ROUSE_GOSSIP_PEERS: '127.0.0.9:4601',
    ROUSE_LISTEN_URL: 'postgres://127.0.0.1:1/elsewhere',
  }
  const cluster = await startDevCluster(t, { nodes: 2, port, env })
  const { url, nodes } = await untilReady(cluster)
  for (const node of nodes) {
    const { body } = await send('GET', `${node.url}/stats`)
    t.match(body, { url: node.url, gossip: { address: node.gossip, candidates: 1 } })
    t.notOk(body.mode.why.includes('listener_lost'), 'it LISTENs on its own database')
    await t.rejects(fetch(node.url.replace('127.0.0.1', '127.0.0.2')), 'other addresses are closed')
  }
  const waiting = Array.from({ length: 4 }, () => apiOf(url).pop('q', '?wait=true&timeout=60000'))
  const waitingAt = async (at: string) => (await send('GET', `${at}/stats`)).body.waiting.total
  await eventually(async () => {
    const counts = await Promise.all(nodes.map((node) => waitingAt(node.url)))
    return counts.reduce((sum, count) => sum + count, 0) === 4
  }, patience)
  cluster.child.kill('SIGTERM')
  for (const answer of await Promise.all(waiting)) t.equal(answer.status, 204)
  t.equal(await cluster.exited, 0)
})
