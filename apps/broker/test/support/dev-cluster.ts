import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { eventually } from '@rouse/testkit'
import type { Test } from 'tap'
import type { ClusterDescription } from '../../src/dev/cluster-file.ts'

export interface RunningDevCluster {
  readonly child: ChildProcess
  readonly exited: Promise<number | null>
  /** What it printed so far. */
  readonly output: () => string
  /** `cluster.json` as it is now. */
  readonly describe: () => Promise<ClusterDescription>
}

const start = fileURLToPath(new URL('../../../../scripts/start.mjs', import.meta.url))

/** Below those that systems hand out, or a connection of another test may have it by the time a node binds. */
export function freePortBase(): number {
  return 20_000 + (process.pid % 1_000) * 10
}

/** What `npm start` runs, without the loaders that tap puts into every process. */
export async function startDevCluster(
  t: Test,
  { nodes, port }: { readonly nodes: number; readonly port: number },
): Promise<RunningDevCluster> {
  const dataDir = await mkdtemp(join(tmpdir(), 'rouse-dev-'))
  const { PATH = '', HOME = '' } = process.env
  const flags = ['--nodes', String(nodes), '--port', String(port), '--data', dataDir]
  const child = spawn(
    'env',
    ['-i', `PATH=${PATH}`, `HOME=${HOME}`, process.execPath, start, ...flags],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => (output += bytes.toString()))
  }
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  t.teardown(async () => {
    child.kill('SIGTERM')
    await exited
    await rm(dataDir, { recursive: true, force: true })
  })
  return {
    child,
    exited,
    output: () => output,
    describe: async () => JSON.parse(await readFile(join(dataDir, 'cluster.json'), 'utf8')),
  }
}

/** Resolves when `cluster.json` is there. */
export async function untilReady(cluster: RunningDevCluster): Promise<ClusterDescription> {
  let description: ClusterDescription | undefined
  await eventually(
    async () => {
      description = await cluster.describe().catch(() => undefined)
      return description !== undefined
    },
    { timeoutMs: 60_000 },
  )
  return description as ClusterDescription
}
