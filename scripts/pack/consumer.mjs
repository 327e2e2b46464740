// A folder outside the workspace with the packed packages, and the programs that run in it.
import { execFile, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../run.mjs'

const outputBytesMax = 64_000_000
const commandMsMax = 240_000

/** The environment of child processes, without the settings of `npm run` and of this workspace. */
const environment = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(npm_(?!config_)|ROUSE_|NODE_OPTIONS|PGHOST)/.test(name),
  ),
)

export class Consumer {
  #cluster

  constructor(folder, tarballs) {
    this.folder = join(folder, 'project')
    this.tarballs = tarballs
    mkdirSync(this.folder)
    this.write('package.json', '{ "name": "project", "private": true, "type": "module" }')
  }

  write(file, text) {
    const path = join(this.folder, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }

  /** Runs a program in the folder and resolves to its standard output. A failure has all its output. */
  async run(command, args, { cwd = this.folder, env = {} } = {}) {
    try {
      const { stdout } = await promisify(execFile)(command, args, {
        cwd,
        env: { ...environment, ...env },
        maxBuffer: outputBytesMax,
        timeout: commandMsMax,
        shell: process.platform === 'win32',
      })
      return stdout
    } catch (error) {
      const output = `${error.stdout ?? ''}${error.stderr ?? ''}`.trim()
      throw new Error(`${command} ${args.join(' ')}: ${output || error.message}`, { cause: error })
    }
  }

  /** A program of the workspace, such as a compiler, run on the files of this folder. */
  async runTool(name, args, options) {
    return await this.run(join(root, 'node_modules', '.bin', name), args, options)
  }

  /** Starts `npx rouse dev`, and resolves to the URL of the cluster when it is ready. */
  async startCluster() {
    const port = await freePort()
    const args = [
      '--no-install',
      'rouse',
      'dev',
      '--nodes',
      '1',
      '--port',
      String(port),
      '--data',
      'data',
    ]
    const child = spawn('npx', args, {
      cwd: this.folder,
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    let output = ''
    const exited = new Promise((resolve) => child.once('exit', resolve))
    this.#cluster = { child, exited }
    this.url = `http://127.0.0.1:${port}`
    await new Promise((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text) => {
          output += text
          this.databaseUrl = /PostgreSQL +(\S+)\n/.exec(output)?.[1]
          if (output.includes('Rouse is ready') && this.databaseUrl !== undefined) resolve()
        })
      }
      void exited.then(() => reject(new Error(`rouse dev ended: ${output}`)))
      setTimeout(() => reject(new Error(`rouse dev is not ready: ${output}`)), commandMsMax).unref()
    })
    return this.url
  }

  /** Ctrl-C reaches every process of a terminal's foreground group, npx and rouse alike. */
  async stop() {
    if (this.#cluster === undefined) return
    const { child, exited } = this.#cluster
    this.#cluster = undefined
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGINT')
    await exited
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}
