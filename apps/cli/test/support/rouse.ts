import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import type { Test } from 'tap'

export const bin = fileURLToPath(new URL('../../bin/rouse.js', import.meta.url))

export interface Run {
  readonly code: number | null
  readonly out: string
  /** Empty on a terminal, which shows both outputs. */
  readonly err: string
}

export interface ScreenSize {
  readonly columns: number
  readonly rows: number
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** The size of the terminal. Default: 100 columns and 40 rows. */
  readonly size?: ScreenSize
}

/** Runs `rouse` in a pipe, without tap's loaders. */
export function rouse(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  return inPipe([bin, ...args], options)
}

/** Runs `rouse` on a terminal. */
export function rouseOnTerminal(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  return onTerminal([bin, ...args], options)
}

/** Runs a script of Node in a pipe. */
export async function inPipe(words: readonly string[], options: RunOptions = {}): Promise<Run> {
  const env = environment(options.env)
  const child = spawn(process.execPath, words, { env, stdio: ['pipe', 'pipe', 'pipe'] })
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  child.stdin.on('error', () => {})
  child.stdin.end(options.input ?? '')
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return { code, out, err }
}

/** Runs a script of Node on a terminal. */
export async function onTerminal(words: readonly string[], options: RunOptions = {}): Promise<Run> {
  const live = await startOnTerminal(words, options)
  if (options.input !== undefined) live.type(options.input)
  const code = await live.exited
  return { code, out: live.out().replaceAll('\r\n', '\n'), err: '' }
}

export interface LiveRun {
  /** The terminal output so far, with all control characters. */
  readonly out: () => string
  readonly type: (keys: string) => void
  readonly resize: (size: ScreenSize) => void
  readonly exited: Promise<number>
  readonly kill: () => void
}

/** Runs `rouse` on an interactive terminal, and stops it at the end of the test. */
export async function liveOnTerminal(
  t: Test,
  args: readonly string[],
  options: RunOptions = {},
): Promise<LiveRun> {
  const live = await startOnTerminal([bin, ...args], options)
  t.teardown(live.kill)
  return live
}

async function startOnTerminal(words: readonly string[], options: RunOptions): Promise<LiveRun> {
  const { spawn: spawnTerminal } = await import('@lydell/node-pty')
  const { columns, rows } = options.size ?? { columns: 100, rows: 40 }
  const env = environment(options.env)
  const [command = '', ...args] = columns === 0 ? withoutSize(words) : [process.execPath, ...words]
  const child = spawnTerminal(command, args, { cols: columns || 80, rows: rows || 24, env })
  let out = ''
  child.onData((text) => {
    out += text
  })
  let isRunning = true
  const exited = new Promise<number>((resolve) => {
    child.onExit(({ exitCode }) => {
      isRunning = false
      resolve(exitCode)
    })
  })
  return {
    out: () => out,
    type: (keys) => child.write(keys),
    resize: (size) => child.resize(size.columns, size.rows),
    exited,
    kill: () => {
      if (isRunning) child.kill('SIGKILL')
    },
  }
}

/** Serial consoles and some containers have a terminal that reports 0 columns. */
function withoutSize(words: readonly string[]): string[] {
  return ['sh', '-c', 'stty cols 0 rows 0; exec "$@"', 'sh', process.execPath, ...words]
}

/** A value for the `skip` option of a test: false if a terminal can be created, otherwise the reason. */
export async function terminalMissing(): Promise<string | false> {
  try {
    await onTerminal(['-e', ''])
    return false
  } catch (error) {
    return `there is no terminal on this platform: ${(error as Error).message}`
  }
}

function environment(env: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env
  return { PATH, HOME, TERM: 'xterm', ...env }
}

/** Removes colours. */
export const plain = stripVTControlCharacters
