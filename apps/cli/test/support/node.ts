import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { eventually, type TestDatabase, testDatabase } from '@rouse/testkit'
import { type Test, t } from 'tap'
import { bin } from './rouse.ts'

export interface TestNode {
  readonly url: string
  readonly database: TestDatabase
  /** Calls the API and returns the parsed body. */
  // biome-ignore lint/suspicious/noExplicitAny: the tests read responses of every shape
  call(method: string, path: string, body?: unknown): Promise<any>
  /** Drains and stops the node. */
  stop(): Promise<unknown>
}

/** Starts a node with `rouse serve` for all tests of a file, on its own database unless one is given. */
export async function sharedNode(
  more: readonly string[] = [],
  given?: TestDatabase,
): Promise<TestNode> {
  const test = t as unknown as Test
  const database = given ?? (await testDatabase(test, { instrumented: false }))
  const { PATH = '', HOME = '' } = process.env
  const flags = ['--port=0', '--gossip-port=0', '--workers=2', '--drain-delay-ms=0', ...more]
  const child = spawn(
    'env',
    ['-i', `PATH=${PATH}`, `HOME=${HOME}`, process.execPath, bin, 'serve', ...flags].concat(
      `--database-url=${database.url}`,
    ),
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const stop = () => {
    child.kill('SIGTERM')
    return exited
  }
  test.teardown(stop)
  const url = await new Promise<string>((resolve, reject) => {
    void exited.then((code) => reject(new Error(`the node ended with ${code}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      const entry = JSON.parse(line) as Record<string, unknown>
      if (entry.msg === 'node is ready') resolve(entry.url as string)
    })
  })
  const node: TestNode = {
    url,
    database,
    stop,
    async call(method, path, body) {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      return text === '' ? undefined : JSON.parse(text)
    },
  }
  const bothServe = async () => (await node.call('GET', '/stats')).local_sidecars === 2
  await eventually(bothServe, { timeoutMs: 30_000 })
  return node
}

let names = 0

/** A name that no other test of the file uses. */
export function unique(prefix = 'queue'): string {
  names += 1
  return `${prefix}-${names}`
}
