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
  /** The output of the program so far. */
  readonly output: () => string
  /** `cluster.json` as it is now. */
  readonly describe: () => Promise<ClusterDescription>
  /**
   * The command lines of all processes that name the data folder: nodes, workers, PostgreSQL, its watchdog.
   */
  readonly processes: () => string[]
  /** The pid of the first of these processes whose command line contains `word`. */
  readonly pidOf: (word: string) => number | undefined
}

export interface DevClusterOptions {
  readonly nodes: number
  readonly port: number
  /** Default: a new folder. */
  readonly dataDir?: string
  readonly env?: Readonly<Record<string, string>>
}

const start = fileURLToPath(new URL('../../../../scripts/start.mjs', import.meta.url))

/** After this time a cluster that does not stop is killed, so that a failed test leaves nothing running. */
const stopMsMax = 40_000

/**
 * Returns a port below the ephemeral range, because a connection of another test may use an ephemeral port
 * before a node binds it. Test files that run at the same time have close process ids: the factor puts their
 * ports far apart.
 */
export function freePortBase(): number {
  return 20_000 + ((process.pid * 617) % 1_000) * 10
}

export async function startDevCluster(
  t: Test,
  { nodes, port, dataDir: given, env }: DevClusterOptions,
): Promise<RunningDevCluster> {
  const dataDir = given ?? (await newDataFolder(t))
  const flags = ['--nodes', String(nodes), '--port', String(port), '--data', dataDir]
  const run = runStart(t, flags, env)
  return {
    ...run,
    dataDir,
    describe: async () => JSON.parse(await readFile(join(dataDir, 'cluster.json'), 'utf8')),
    processes: () => processesNaming(dataDir).map(({ command }) => command),
    pidOf: (word) => processesNaming(dataDir).find(({ command }) => command.includes(word))?.pid,
  }
}

/** Runs the program of `npm start`, without the loaders of tap, and stops it at the end of the test. */
export function runStart(
  t: Test,
  flags: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Pick<RunningDevCluster, 'child' | 'exited' | 'output'> {
  const { PATH = '', HOME = '' } = process.env
  const settings = Object.entries({ PATH, HOME, ...env }).map(([name, value]) => `${name}=${value}`)
  const child = spawn('env', ['-i', ...settings, process.execPath, start, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => (output += bytes.toString()))
  }
  // Wait for `close`, not for `exit`: at `close` all output has been read.
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  t.teardown(async () => {
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
    await exited
    clearTimeout(timer)
  })
  return { child, exited, output: () => output }
}

/**
 * Makes a folder that PostgreSQL can access, although it does not run as root. Otherwise it would use another
 * folder, which nothing removes.
 */
export async function newDataFolder(t: Test): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'rouse-dev-'))
  await chmod(path, 0o755)
  t.teardown(() => rm(path, { recursive: true, force: true }))
  return path
}

/** Resolves when `cluster.json` exists. */
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

function processesNaming(word: string): { readonly pid: number; readonly command: string }[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids
    .map((pid) => ({ pid: Number(pid), command: commandOf(pid) }))
    .filter(({ command }) => command.includes(word))
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}
