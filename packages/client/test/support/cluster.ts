import { type ChildProcess, spawn } from 'node:child_process'
import { builtNode, eventually, freePort, type TestDatabase, testDatabase } from '@rouse/testkit'
import { type Test, t } from 'tap'
import { Rouse, type RouseOptions } from '../../src/index.ts'

/** Nodes on one database. Each keeps its port across restarts. */
export interface Cluster {
  readonly urls: readonly string[]
  readonly database: TestDatabase
  /** Kills the node at this index; resolves when its process has ended. */
  kill(index: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
  start(index: number): Promise<void>
}

export async function startCluster(test: Test, count: number): Promise<Cluster> {
  const database = await testDatabase(test, { instrumented: false })
  const ports = await Promise.all(Array.from({ length: count }, freePort))
  const urls = ports.map((port) => `http://127.0.0.1:${port}`)
  const children: ChildProcess[] = []
  const cluster: Cluster = {
    urls,
    database,
    async start(index) {
      const child = spawnNode(database.url, ports[index] as number)
      children[index] = child
      test.teardown(() => ended(child, 'SIGTERM'))
      await eventually(
        async () => {
          if (child.exitCode !== null) throw new Error(`the node ended with ${child.exitCode}`)
          return (await fetch(`${urls[index]}/ready`)).ok
        },
        { timeoutMs: 60_000 },
      )
    },
    kill: (index, signal) => ended(children[index] as ChildProcess, signal),
  }
  await Promise.all(ports.map((_, index) => cluster.start(index)))
  return cluster
}

/** One node for all tests of a file. */
export function sharedCluster(): Promise<Cluster> {
  return startCluster(t as unknown as Test, 1)
}

/** Creates a client, and closes it at the end of the test. */
// biome-ignore lint/suspicious/noExplicitAny: tests push any payload
export function clientOf<Queues extends object = Record<string, any>>(
  test: Test,
  urls: string | readonly string[],
  options: Partial<RouseOptions> = {},
): Rouse<Queues> {
  const rouse = new Rouse<Queues>({ urls, ...options })
  test.teardown(() => rouse.close())
  return rouse
}

let names = 0

/** A queue name that no other test of the file uses. */
export function unique(prefix = 'queue'): string {
  names += 1
  return `${prefix}-${names}`
}

/** Starts the built program, without the loaders that tap adds to every Node process of a test. */
function spawnNode(databaseUrl: string, port: number): ChildProcess {
  const { PATH = '', HOME = '' } = process.env
  const settings = Object.entries({
    PATH,
    HOME,
    ROUSE_DATABASE_URL: databaseUrl,
    ROUSE_PORT: String(port),
    ROUSE_GOSSIP_PORT: '0',
    ROUSE_WORKERS: '1',
    ROUSE_LOG_LEVEL: 'warn',
  }).map(([name, value]) => `${name}=${value}`)
  return spawn('env', ['-i', ...settings, process.execPath, builtNode()], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

async function ended(child: ChildProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  await gone
}
