// Finds docker compose, and runs its commands one at a time.
import { spawn } from 'node:child_process'
import { root } from '../run.mjs'

const outputCharsMax = 20_000

/** `docker compose`, else `docker-compose`; undefined if there is no engine or neither command. */
export async function findCompose() {
  if (!(await answers(['docker', 'version']))) return undefined
  for (const command of [['docker', 'compose'], ['docker-compose']]) {
    if (await answers([...command, 'version'])) return command
  }
  return undefined
}

async function answers(command) {
  return runCommand(command, { msMax: 20_000 }).then(
    () => true,
    () => false,
  )
}

/**
 * Resolves with what the command printed to standard output. If it fails, the error contains everything it printed.
 * `signal` ends the command, which then fails.
 */
export function runCommand([program, ...args], { cwd = root, env = {}, msMax, signal }) {
  // A separate process group: Ctrl-C must reach only this program, which cleans up with such commands.
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    timeout: msMax,
    signal,
  })
  let output = ''
  let printed = ''
  const listen = (text) => {
    printed = (printed + text).slice(-outputCharsMax)
  }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output = (output + text).slice(-outputCharsMax)
    listen(text)
  })
  child.stderr.setEncoding('utf8').on('data', listen)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, killedBy) => {
      if (code === 0) resolve(output.trim())
      else {
        const name = [program, ...args].join(' ')
        reject(new Error(`${name} exited with ${code ?? killedBy}\n${printed}`))
      }
    })
  })
}
