// Runs the examples as a user would, against two nodes on one database.
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { builtNode, eventually, freePort, testDatabase } from '@rouse/testkit'
import { t as rootTest, type Test, test } from 'tap'

const patience = { timeoutMs: 60_000 }
const database = await testDatabase(rootTest as unknown as Test, { instrumented: false })
const urls = await Promise.all([startNode(), startNode()])

test('the worker example handles its messages and stops on SIGTERM', async (t) => {
  const example = run(t, 'worker', urls)
  await eventually(() => example.lines().includes('sent welcome to bob@example.com'), patience)
  example.child.kill('SIGTERM')
  t.equal(await example.exited, 0)
  t.same(example.lines(), [
    'sent welcome to ann@example.com',
    'sent welcome to bob@example.com',
    'stopped',
  ])
})

test('the pipeline example bills every order once', async (t) => {
  const example = run(t, 'pipeline', urls)
  t.equal(await example.exited, 0)
  t.same(example.lines().sort(), ['order 1: 10.50 EUR', 'order 2: 21.00 EUR', 'order 3: 31.50 EUR'])
})

test('the fan-out example delivers every message to both groups', async (t) => {
  const example = run(t, 'fan-out', urls)
  t.equal(await example.exited, 0)
  t.same(example.lines().sort(), ['audit: ann', 'audit: bob', 'mailer: ann', 'mailer: bob'])
})

test('the outbox example delivers the message of a committed transaction only', async (t) => {
  const example = run(t, 'outbox', [urls[0] as string, database.url])
  t.equal(await example.exited, 0)
  t.same(example.lines(), ['welcome, ann'])
})

test('the retries example retries, gives up and reads results', async (t) => {
  const example = run(t, 'retries', urls)
  t.equal(await example.exited, 0)
  t.same(example.lines(), [
    'good completed {"receipt":"R-1","attempts":1}',
    'slow completed {"receipt":"R-2","attempts":2}',
    'broken dead "the terminal is broken"',
    'stolen dead "the card is stolen"',
  ])
})

test('the testing example needs no node', async (t) => {
  const example = run(t, 'testing', [])
  t.equal(await example.exited, 0)
  t.same(example.lines(), ['reminded ann after a day'])
})

test('the cron example gets each tick once', async (t) => {
  const example = run(t, 'cron', urls)
  t.equal(await example.exited, 0)
  const lines = example.lines()
  t.equal(lines.length, 3)
  for (const line of lines) t.match(line, /^figures for \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/)
  t.equal(new Set(lines).size, 3, 'no tick is delivered twice')
})

test('the several-nodes example works although one node is down', async (t) => {
  const down = `http://127.0.0.1:${await freePort()}`
  const example = run(t, 'several-nodes', [...urls, down])
  t.equal(await example.exited, 0)
  t.same(example.lines(), ['100 messages by way of 3 nodes'])
})

interface Example {
  readonly child: ChildProcess
  readonly exited: Promise<number | null>
  /** The output so far. */
  readonly lines: () => string[]
}

function run(t: Test, name: string, args: readonly string[]): Example {
  const file = fileURLToPath(new URL(`./${name}.ts`, import.meta.url))
  const child = spawnClean(['--import', 'tsx', file, ...args])
  t.teardown(() => void child.kill('SIGKILL'))
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  return {
    child,
    exited: new Promise((resolve) => child.once('close', resolve)),
    lines: () => text.split('\n').filter((line) => line !== ''),
  }
}

async function startNode(): Promise<string> {
  const port = await freePort()
  const child = spawnClean([builtNode()], {
    ROUSE_DATABASE_URL: database.url,
    ROUSE_PORT: String(port),
    ROUSE_GOSSIP_PORT: '0',
    ROUSE_WORKERS: '1',
    ROUSE_LOG_LEVEL: 'silent',
  })
  rootTest.teardown(async () => {
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    await gone
  })
  const url = `http://127.0.0.1:${port}`
  await eventually(async () => (await fetch(`${url}/ready`)).ok, patience)
  return url
}

/** Starts a process without the loaders that tap adds to every Node process of a test. */
function spawnClean(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  const { PATH = '', HOME = '' } = process.env
  const settings = Object.entries({ PATH, HOME, ...env }).map(([name, value]) => `${name}=${value}`)
  return spawn('env', ['-i', ...settings, process.execPath, ...args], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}
