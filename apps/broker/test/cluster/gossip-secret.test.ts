// The secret that signs gossip: it can be rotated on running nodes, and is required if gossip leaves this
// machine.
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { KeyRing } from '@rouse/gossip'
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { type RunningBroker, spawnBroker, startBroker } from '../support/broker.ts'
import { startNode, statsOf, untilAllHeard } from '../support/cluster.ts'
import { apiOf, send } from '../support/http.ts'

const [old, fresh] = ['the secret of last year', 'the secret of this year']
const timeout = 120_000

test('rotating the secret of running nodes drops no datagram', { timeout }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'rouse-secret-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const files = ['a', 'b'].map((name) => join(folder, name)) as [string, string]
  await Promise.all(files.map((file) => writeFile(file, old)))
  const a = await startNode(t, 0, { env: { ROUSE_GOSSIP_SECRET_FILE: files[0] } })
  const b = await startNode(t, 1, {
    database: a.database,
    env: { ROUSE_GOSSIP_SECRET_FILE: files[1] },
  })
  await untilAllHeard([a, b])

  for (const [step, secrets] of [`${old},${fresh}`, `${fresh},${old}`, fresh].entries()) {
    for (const [i, node] of [a, b].entries()) {
      await writeFile(files[i] as string, secrets)
      node.child.kill('SIGHUP')
      await eventually(() => renewals(node) === step + 1)
      await wake(a, b)
      await wake(b, a)
    }
  }
  for (const { url } of [a, b]) {
    const { body } = await send('GET', `${url}/stats`)
    t.match(body.gossip.drops, { key: 0, mac: 0, cluster: 0 })
    t.equal(body.wakes.fallback, 0)
    t.equal(body.gossip.verifiedByKey.length, 1)
  }
  await writeFile(files[0], 'short')
  a.child.kill('SIGHUP')
  await eventually(() =>
    a.log.some(({ msg }) => msg === 'could not reload the gossip secret; keeping the old one'),
  )
  await wake(a, b)
  const workersReady = () => a.log.filter(({ msg }) => msg === 'worker is ready')
  process.kill(workersReady()[0]?.workerPid as number, 'SIGKILL')
  await eventually(() => workersReady().length === 3, { timeoutMs: 30_000 })
  t.pass('a worker starts although the file is bad')

  const stranger = await startNode(t, 2, {
    database: a.database,
    env: { ROUSE_GOSSIP_SECRET: old },
  })
  await eventually(async () => {
    const { body } = await send('GET', `${a.url}/stats`)
    return body.gossip.drops.key > 0
  })
  t.match((await statsOf(stranger.url)).peers, [{ state: 'unheard' }, { state: 'unheard' }])
})

test('a node whose gossip port is open to the network does not start without a secret', {
  timeout,
}, async (t) => {
  const { url } = await testDatabase(t)
  const child = spawnBroker({ ROUSE_DATABASE_URL: url, ROUSE_GOSSIP_HOST: '0.0.0.0' })
  let complaint = ''
  child.stderr?.on('data', (bytes: Buffer) => {
    complaint += bytes.toString()
  })
  t.equal(await new Promise((resolve) => child.once('exit', resolve)), 1)
  t.match(complaint, /ROUSE_GOSSIP_SECRET is not set.*openssl/)
})

test('a node with invalid gossip settings exits before it connects to the database', {
  timeout,
}, async (t) => {
  for (const [name, value] of [
    ['ROUSE_GOSSIP_SECRET', 'hushed'],
    ['ROUSE_GOSSIP_PEERS', '10.0.0.5'],
  ] as const) {
    for (const args of [[], ['--check-config']]) {
      // Nothing listens on this port, so a node that tried to connect would wait forever.
      const child = spawnBroker(
        { ROUSE_DATABASE_URL: 'postgres://u@127.0.0.1:1/none', [name]: value },
        args,
      )
      const [out, complaint, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'exit'),
      ])
      t.equal(code, 1)
      t.equal(out, '')
      t.match(complaint, new RegExp(`^rouse-broker: ${name} cannot be used\\. [^\n]*\n$`))
      t.notMatch(complaint, /hushed/)
    }
  }
})

test('a node with two secrets of the same key id exits with one line', {
  timeout,
}, async (t) => {
  const { url, pool } = await testDatabase(t)
  const { rows } = await pool.query<{ id: string }>('select id::text from rouse.cluster')
  const keyId = (secret: string) => new KeyRing(rows[0]?.id ?? '', [secret]).keyId
  const numbers = Array.from({ length: 10_000 }, (_, i) => i)
  const twin = numbers.find((i) => keyId(`${old} ${i}`) === keyId(old))
  const child = spawnBroker({
    ROUSE_DATABASE_URL: url,
    ROUSE_GOSSIP_PORT: '0',
    ROUSE_GOSSIP_SECRET: `${old},${old} ${twin}`,
  })
  const [log, complaint, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  t.equal(code, 1)
  t.match(log, /"level":"fatal".*Two gossip secrets.*gossip could not start"}\n/)
  t.equal(complaint, '')
})

test('a node whose gossip port is in use exits', { timeout }, async (t) => {
  const first = await startBroker(t)
  const { body } = await send('GET', `${first.url}/stats`)
  const port = String(body.gossip.address).split(':')[1] as string
  const second = spawnBroker({
    ROUSE_DATABASE_URL: first.database.url,
    ROUSE_PORT: '0',
    ROUSE_GOSSIP_PORT: port,
  })
  let log = ''
  second.stdout?.on('data', (bytes: Buffer) => {
    log += bytes.toString()
  })
  t.equal(await new Promise((resolve) => second.once('exit', resolve)), 1)
  t.match(log, /gossip could not start.*EADDRINUSE|EADDRINUSE.*gossip could not start/s)
})

function renewals(node: RunningBroker): number {
  return node.log.filter(({ msg }) => msg === 'gossip secret reloaded').length
}

let queues = 0

async function wake(from: RunningBroker, to: RunningBroker): Promise<void> {
  queues += 1
  const queue = `q${queues}`
  const answer = apiOf(to.url).pop(queue, '?wait=true&timeout=20000&autoAck=true')
  await eventually(async () => (await statsOf(to.url)).waiting.total === 1)
  await apiOf(from.url).push({ queue, payload: 1 })
  if ((await answer).status !== 200) throw new Error('the waiting pop got no message')
}
