import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import type { Test } from 'tap'

export const bin = fileURLToPath(new URL('../../bin/rouse.js', import.meta.url))

export interface Run {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** The size that the terminal reports. Default: 100 columns and 40 rows. */
  readonly size?: { readonly columns: number; readonly rows: number }
}

/** Runs `rouse` in a pipe, without tap's loaders. */
export function rouse(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  return run(['env', '-i', ...environment(options.env), process.execPath, bin, ...args], options)
}

/** Runs `rouse` on a terminal. */
export function rouseOnTerminal(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  return run(terminalOf(args, options), options)
}

export interface LiveRun {
  /** The terminal output so far, with all control characters. */
  readonly out: () => string
  readonly type: (keys: string) => void
  readonly exited: Promise<number | null>
}

/** Runs `rouse` on an interactive terminal, and stops it at the end of the test. */
export function liveOnTerminal(
  t: Test,
  args: readonly string[],
  options: RunOptions = {},
): LiveRun {
  const [command = '', ...words] = terminalOf(args, options)
  const child = spawn(command, words, { stdio: ['pipe', 'pipe', 'ignore'] })
  t.teardown(() => void child.kill('SIGKILL'))
  let out = ''
  child.stdout.on('data', (bytes: Buffer) => {
    out += bytes.toString()
  })
  child.stdin.on('error', () => {})
  return {
    out: () => out,
    type: (keys) => void child.stdin.write(keys),
    exited: new Promise((resolve) => child.once('close', resolve)),
  }
}

/** A value for the `skip` option of a test: false if a terminal can be created, otherwise the reason. */
export async function terminalMissing(): Promise<string | false> {
  const { code } = await rouseOnTerminal(['--help']).catch(() => ({ code: null }))
  return code === 0 ? false : 'there is no `script` here to make a terminal'
}

function terminalOf(args: readonly string[], options: RunOptions): string[] {
  const words = ['env', '-i', ...environment(options.env), process.execPath, bin, ...args]
  const { columns, rows } = options.size ?? { columns: 100, rows: 40 }
  const command = `stty cols ${columns} rows ${rows}; ${words.map(quote).join(' ')}`
  return ['script', '-qec', command, '/dev/null']
}

function environment(env: Readonly<Record<string, string>> = {}): string[] {
  const { PATH = '', HOME = '' } = process.env
  const given = { PATH, HOME, TERM: 'xterm', ...env }
  return Object.entries(given).map(([name, value]) => `${name}=${value}`)
}

async function run([command = '', ...args]: readonly string[], options: RunOptions): Promise<Run> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  let [out, err] = ['', '']
  child.stdout.on('data', (bytes: Buffer) => {
    out += bytes.toString()
  })
  child.stderr.on('data', (bytes: Buffer) => {
    err += bytes.toString()
  })
  child.stdin.on('error', () => {})
  child.stdin.end(options.input ?? '')
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return { code, out: out.replaceAll('\r\n', '\n'), err }
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}

/** Removes colours. */
export const plain = stripVTControlCharacters
