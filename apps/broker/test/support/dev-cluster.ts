import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { eventually } from '@rouse/testkit'
import type { Test } from 'tap'
import type { ClusterDescription } from '../../src/dev/cluster-file.ts'

export interface RunningDevCluster {
  readonly child: ChildProcess
  readonly dataDir: string
  readonly exited: Promise<number | null>
  /** What it printed so far. */
  readonly output: () => string
  /** `cluster.json` as it is now. */
  readonly describe: () => Promise<ClusterDescription>
  /** The words of every process that names the data folder: nodes, their workers, PostgreSQL, its watchdog. */
  readonly processes: () => string[]
}

export interface DevClusterOptions {
  readonly nodes: number
  readonly port: number
  /** Else a new one. */
  readonly dataDir?: string
}

const start = fileURLToPath(new URL('../../../../scripts/start.mjs', import.meta.url))

/** A test that fails because the cluster does not end must not leave it behind. */
const stopMsMax = 40_000

/**
 * Below those that systems hand out, or a connection of another test may have it by the time a node binds. Test files
 * that run at the same time have process numbers close to each other: the factor puts their ports far apart.
 */
export function freePortBase(): number {
  return 20_000 + ((process.pid * 617) % 1_000) * 10
}

/** What `npm start` runs, without the loaders that tap puts into every process. */
export async function startDevCluster(
  t: Test,
  { nodes, port, dataDir: given }: DevClusterOptions,
): Promise<RunningDevCluster> {
  const dataDir = given ?? (await newDataFolder(t))
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
    const timer = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
    await exited
    clearTimeout(timer)
  })
  return {
    child,
    dataDir,
    exited,
    output: () => output,
    describe: async () => JSON.parse(await readFile(join(dataDir, 'cluster.json'), 'utf8')),
    processes: () => processesNaming(dataDir),
  }
}

/** Open to PostgreSQL, which is no root: it would keep its data outside, where nobody removes them. */
export async function newDataFolder(t: Test): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'rouse-dev-'))
  await chmod(path, 0o755)
  t.teardown(() => rm(path, { recursive: true, force: true }))
  return path
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

function processesNaming(word: string): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(commandOf).filter((command) => command.includes(word))
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}
