// The compose cluster under test: builds, starts, disturbs and removes it, under a unique project name.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../run.mjs'
import { extraCertificates } from './certificates.mjs'
import { findCompose, runCommand } from './command.mjs'
import { useToken } from './http.mjs'

const services = ['balancer', 'node1', 'node2', 'node3', 'postgres']
const buildMsMax = 900_000
const commandMsMax = 180_000

export class ComposeCluster {
  nodes = ['node1', 'node2', 'node3']
  #compose
  #project = `rouse-test-${randomBytes(4).toString('hex')}`
  #interrupted = new AbortController()
  #containers = new Map()
  #urls = new Map()
  #folder = mkdtempSync(join(tmpdir(), 'rouse-compose-'))
  #env = {
    ROUSE_ADMIN_KEY_PATH: join(this.#folder, 'admin-key'),
    // This image is kept between runs with its layers, so that the next build is short.
    NODE_IMAGE: 'rouse:compose-test',
    // The host's network reaches everything that this machine reaches.
    BUILD_NETWORK: process.env.BUILD_NETWORK || 'host',
    EXTRA_CA_CERTIFICATES: extraCertificates(),
    POSTGRES_PASSWORD: randomBytes(16).toString('hex'),
    ROUSE_GOSSIP_SECRET: randomBytes(32).toString('hex'),
    BALANCER_PORT: '0',
    NODE1_PORT: '0',
    NODE2_PORT: '0',
    NODE3_PORT: '0',
  }

  /** Undefined if there is no engine to run the cluster. */
  static async find() {
    const compose = await findCompose()
    return compose && new ComposeCluster(compose)
  }

  constructor(compose) {
    this.#compose = compose
  }

  /** The secret file of the first API key. */
  async #writeKey() {
    const key = await runCommand([join(root, 'node_modules/.bin/rouse'), 'keys', 'generate'], {
      msMax: commandMsMax,
      signal: this.#interrupted.signal,
    })
    writeFileSync(this.#env.ROUSE_ADMIN_KEY_PATH, key, { mode: 0o644 })
    useToken(key.trim())
  }

  get command() {
    return this.#compose.join(' ')
  }

  async build() {
    await this.#run(['build', 'node1'], buildMsMax)
  }

  async up() {
    await this.#writeKey()
    await this.#run(['up', '--detach', '--no-build'])
    for (const service of services) {
      this.#containers.set(service, await this.#run(['ps', '-q', service]))
      if (service !== 'postgres') await this.#findUrl(service)
    }
  }

  /** The URL of a node or the balancer on this machine. It changes when a container restarts. */
  url(service) {
    return this.#urls.get(service)
  }

  async kill(service) {
    await this.#docker(['kill', '--signal', 'KILL', this.#containers.get(service)])
  }

  /** Resolves with the exit code. The engine sends SIGTERM, and SIGKILL after the grace period. */
  async stop(service) {
    await this.#run(['stop', service])
    return Number(await this.inspect(service, '{{.State.ExitCode}}'))
  }

  async start(service) {
    await this.#docker(['start', this.#containers.get(service)])
    await this.#findUrl(service)
  }

  inspect(service, format) {
    return this.#docker(['inspect', '--format', format, this.#containers.get(service)])
  }

  /** Runs JavaScript in a container, in the folder of its node, and resolves with the output. */
  evaluate(service, script) {
    return this.#docker(['exec', this.#containers.get(service), 'node', '-e', script])
  }

  logs() {
    return this.#run(['logs', '--no-color', '--tail', '40'])
  }

  /** Ends the running command, so that `down` can begin. */
  interrupt() {
    this.#interrupted.abort()
  }

  /** Removes the cluster. Resolves with what is left of it, which should be nothing. */
  async down() {
    this.#interrupted = new AbortController()
    await this.#run(['down', '--volumes', '--remove-orphans'])
    rmSync(this.#folder, { recursive: true, force: true })
    const mine = ['--quiet', '--filter', `label=com.docker.compose.project=${this.#project}`]
    const left = await Promise.all([
      this.#docker(['ps', '--all', ...mine]),
      this.#docker(['volume', 'ls', ...mine]),
      this.#docker(['network', 'ls', ...mine]),
    ])
    return left.filter((ids) => ids !== '').join(' ')
  }

  async #findUrl(service) {
    const address = await this.#docker(['port', this.#containers.get(service), '4600/tcp'])
    this.#urls.set(service, `http://${address.split('\n')[0]}`)
  }

  #run(args, msMax = commandMsMax) {
    const file = ['--project-name', this.#project, '--file', 'docker-compose.cluster.yml']
    return this.#command([...this.#compose, ...file, ...args], msMax)
  }

  #docker(args) {
    return this.#command(['docker', ...args], commandMsMax)
  }

  #command(command, msMax) {
    return runCommand(command, { env: this.#env, msMax, signal: this.#interrupted.signal })
  }
}
