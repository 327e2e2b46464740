// Runs a command of the workspace in the foreground and returns its exit code.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))

/** The environment with the workspace's tools; turbo needs pnpm on the PATH. */
export const toolEnvironment = {
  ...process.env,
  PATH: `${join(root, 'node_modules', '.bin')}${delimiter}${process.env.PATH}`,
  TURBO_TELEMETRY_DISABLED: '1',
  DO_NOT_TRACK: '1',
  ...(process.stdout.isTTY ? {} : { NO_COLOR: '1' }),
}

/** Standard input is closed: no command may prompt. */
export async function run(command, args, environment = {}) {
  const child = spawn(command, args, {
    cwd: root,
    env: { ...toolEnvironment, ...environment },
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal]))
  })
}

/** Like run, but a failure ends this process with the same code. */
export async function runOrExit(command, args, environment) {
  const code = await run(command, args, environment)
  if (code !== 0) process.exit(code)
}
