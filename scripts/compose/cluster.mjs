// The compose cluster under test: builds, starts, disturbs and removes it, under a unique project name. It is started with
// the commands of docs/quick-start.md, in a copy of the checkout, because they write files with secrets there.
import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { extraCertificates } from './certificates.mjs'
import { copyCheckout } from './checkout.mjs'
import { findCompose, runCommand } from './command.mjs'
import { useToken } from './http.mjs'

const services = ['balancer', 'node1', 'node2', 'node3', 'postgres']
const buildMsMax = 900_000
const commandMsMax = 180_000
/** Compose wants them for every command. The commands of the documentation write real ones to `.env`. */
const unusedSecrets = { POSTGRES_PASSWORD: 'x', ROUSE_GOSSIP_SECRET: 'x' }
/** How long a verb may take to exit after Ctrl-C. */
const signalMsMax = 10_000

export class ComposeCluster {
  nodes = ['node1', 'node2', 'node3']
  adminKey
  #compose
  #project = `rouse-test-${randomBytes(4).toString('hex')}`
  #interrupted = new AbortController()
  #containers = new Map()
  #urls = new Map()
  #folder
  #env = {
    COMPOSE_FILE: 'docker-compose.cluster.yml',
    COMPOSE_PROJECT_NAME: this.#project,
    // This image is kept between runs with its layers, so that the next build is short.
    NODE_IMAGE: 'rouse:compose-test',
    // The host's network reaches everything that this machine reaches.
    BUILD_NETWORK: process.env.BUILD_NETWORK || 'host',
    EXTRA_CA_CERTIFICATES: extraCertificates(),
    BALANCER_PORT: '0',
    NODE1_PORT: '0',
    NODE2_PORT: '0',
    NODE3_PORT: '0',
    PROMETHEUS_PORT: '0',
  }

  /** Undefined if there is no engine to run the cluster. */
  static async find() {
    const compose = await findCompose()
    return compose && new ComposeCluster(compose)
  }

  constructor(compose) {
    this.#compose = compose
    this.#folder = copyCheckout(compose)
    this.#env.PATH = `${join(this.#folder, 'bin')}:${process.env.PATH}`
  }

  get command() {
    return this.#compose.join(' ')
  }

  async build() {
    await this.#command([...this.#compose, 'build', 'node1'], buildMsMax, unusedSecrets)
  }

  /** Runs the commands that a user copies to start the cluster. */
  async up(commands) {
    await this.shell(commands)
    this.adminKey = readFileSync(join(this.#folder, '.rouse-admin-key'), 'utf8').trim()
    useToken(this.adminKey)
    for (const service of services) await this.#find(service)
  }

  /** Runs commands of the documentation, and resolves with what they print. */
  shell(commands) {
    const url = this.url('balancer')
    const placed = commands.replaceAll('rouse:local', this.#env.NODE_IMAGE)
    const script = url === undefined ? placed : placed.replaceAll('http://127.0.0.1:4600', url)
    return this.#command(['bash', '--norc', '-euo', 'pipefail', '-c', script], buildMsMax)
  }

  /** Starts Prometheus of the profile, with a key that a node creates for it. */
  async upMonitoring() {
    const key = await this.exec('node1', [
      'rouse',
      'keys',
      'create',
      'prometheus',
      '--preset',
      'viewer',
    ])
    writeFileSync(join(this.#folder, '.rouse-metrics-key'), `${key}\n`)
    await this.#run(['--profile', 'monitoring', 'up', '--detach', '--no-build', 'prometheus'])
    await this.#find('prometheus')
  }

  /** Runs a verb of the image in a container of its own, with the restrictions of the compose file. */
  rouse(args, flags = ['--rm']) {
    const hardened = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges']
    return this.#docker(['run', ...hardened, ...flags, this.#env.NODE_IMAGE, ...args])
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

  /** Runs a command in a container, in the folder of its node, and resolves with the output. */
  exec(service, command) {
    return this.#docker(['exec', this.#containers.get(service), ...command])
  }

  /**
   * Starts a verb in a container of its own beside the nodes, sends it SIGINT once `runs` resolves, and resolves with its
   * exit code.
   */
  async interruptVerb(args, runs) {
    const place = ['--network', `${this.#project}_default`, '--env', `ROUSE_TOKEN=${this.adminKey}`]
    const id = await this.rouse(args, ['--detach', ...place])
    try {
      await runs()
      await this.#docker(['kill', '--signal', 'INT', id])
      return Number(await this.#command(['docker', 'wait', id], signalMsMax))
    } finally {
      await this.#docker(['rm', '--force', id]).catch(() => {})
    }
  }

  imageSizeBytes() {
    return this.#docker(['image', 'inspect', '--format', '{{.Size}}', this.#env.NODE_IMAGE])
  }

  /** What the engine counts as used memory of the container. */
  async memory(service) {
    const id = this.#containers.get(service)
    const used = await this.#docker(['stats', '--no-stream', '--format', '{{.MemUsage}}', id])
    return used.split(' / ')[0]
  }

  async hasImage(name) {
    const isHere = () =>
      this.#docker(['image', 'inspect', name]).then(
        () => true,
        () => false,
      )
    if (await isHere()) return true
    await this.#docker(['pull', '--quiet', name]).catch(() => {})
    return isHere()
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
    const down = ['--profile', 'monitoring', 'down', '--volumes', '--remove-orphans']
    await this.#command([...this.#compose, ...down], commandMsMax, unusedSecrets)
    const mine = ['--quiet', '--filter', `label=com.docker.compose.project=${this.#project}`]
    const left = await Promise.all([
      this.#docker(['ps', '--all', ...mine]),
      this.#docker(['volume', 'ls', ...mine]),
      this.#docker(['network', 'ls', ...mine]),
    ])
    rmSync(this.#folder, { recursive: true, force: true })
    return left.filter((ids) => ids !== '').join(' ')
  }

  async #find(service) {
    this.#containers.set(service, await this.#run(['ps', '-q', service]))
    if (service !== 'postgres') await this.#findUrl(service)
  }

  async #findUrl(service) {
    const port = service === 'prometheus' ? '9090/tcp' : '4600/tcp'
    const address = await this.#docker(['port', this.#containers.get(service), port])
    this.#urls.set(service, `http://${address.split('\n')[0]}`)
  }

  #run(args) {
    return this.#command([...this.#compose, ...args], commandMsMax)
  }

  #docker(args) {
    return this.#command(['docker', ...args], commandMsMax)
  }

  #command(command, msMax, settings = {}) {
    const env = { ...this.#env, ...settings }
    return runCommand(command, { cwd: this.#folder, env, msMax, signal: this.#interrupted.signal })
  }
}
