// What `npm start` runs: an embedded PostgreSQL, nodes on it, and one port before them. Whatever dies is started again
// after a second, so that `kill -9` is a demonstration and not the end of it.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '@rouse/database'
import { type Balancer, startBalancer } from './balancer.ts'
import { ClusterFile } from './cluster-file.ts'
import { DevError } from './dev-error.ts'
import { gossipSecret } from './gossip-secret.ts'
import { type NodeProcess, startNode } from './node-process.ts'
import { type ReadinessWatch, watchReadiness } from './readiness-watch.ts'

export interface DevClusterOptions {
  readonly nodes: number
  /** The balanced one. Nodes are ten higher each, and the gossip of a node is one above it. */
  readonly port: number
  readonly dataDir: string
  readonly say: (line: string) => void
}

interface DevNode {
  readonly id: string
  readonly port: number
  process: NodeProcess
}

const host = '127.0.0.1'
const nodesMax = 16
const portStep = 10
const restartMs = 1_000

export class DevCluster {
  readonly #options: DevClusterOptions
  readonly #file: ClusterFile
  readonly #nodes: DevNode[] = []
  readonly #stopping = new AbortController()
  #postgres: EmbeddedPostgres | undefined
  #secretFile = ''
  #watch: ReadinessWatch | undefined
  #balancer: Balancer | undefined
  #stopped: Promise<void> | undefined

  constructor(options: DevClusterOptions) {
    if (!(options.nodes >= 1 && options.nodes <= nodesMax)) {
      throw new DevError('bad_argument', `--nodes must be a number from 1 to ${nodesMax}`)
    }
    if (!(options.port >= 1 && options.port + (options.nodes + 1) * portStep <= 65_535)) {
      throw new DevError('bad_argument', '--port must be a port number with room above it')
    }
    this.#options = options
    this.#file = new ClusterFile(join(options.dataDir, 'cluster.json'))
  }

  get url(): string {
    return urlOf(this.#options.port)
  }

  /** Resolves when every node is ready and the file says so. */
  async start(): Promise<void> {
    const { dataDir, nodes, port } = this.#options
    await this.#file.remove()
    await mkdir(dataDir, { recursive: true })
    this.#secretFile = await gossipSecret(dataDir)
    const dataFolder = join(dataDir, 'postgres')
    this.#postgres = await startEmbeddedPostgres({ dataDir: dataFolder })
    this.#watchPostgres(this.#postgres)
    for (let i = 0; i < nodes; i += 1) {
      const node = { id: `node-${i + 1}`, port: port + (i + 1) * portStep }
      this.#nodes.push({ ...node, process: this.#launch(node) })
    }
    await Promise.all(this.#nodes.map((node) => node.process.ready))
    for (const node of this.#nodes) this.#watchNode(node)
    await this.#balance()
    await this.#describe()
    this.#sayReady(this.#postgres.url)
  }

  /** Resolves when nothing is left running; safe to call twice. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    this.#stopping.abort()
    await this.#file.remove()
    this.#watch?.stop()
    await this.#balancer?.stop()
    await Promise.all(this.#nodes.map((node) => node.process.stop()))
    await this.#postgres?.stop()
  }

  #launch({ id, port }: { readonly id: string; readonly port: number }): NodeProcess {
    const { dataDir } = this.#options
    const node = startNode({
      id,
      port,
      gossipPort: port + 1,
      databaseUrl: this.#postgres?.url ?? '',
      gossipSecretFile: this.#secretFile,
      logFile: join(dataDir, `${id}.log`),
    })
    node.ready.catch(() => {})
    return node
  }

  async #balance(): Promise<void> {
    const watch = watchReadiness(this.#nodes.map(({ port }) => urlOf(port)))
    this.#watch = watch
    try {
      this.#balancer = await startBalancer({
        host,
        port: this.#options.port,
        backends: this.#nodes.map(({ port }) => ({ host, port })),
        isReady: ({ port }) => watch.isReady(urlOf(port)),
      })
    } catch (error) {
      throw new DevError('port_taken', `the balancer cannot listen: ${(error as Error).message}`)
    }
  }

  #watchNode(node: DevNode): void {
    void node.process.exited.then(async (how) => {
      if (!(await this.#pause(`${node.id} ended (${how}); starting it again`))) return
      node.process = this.#launch(node)
      this.#watchNode(node)
      await node.process.ready.then(
        () => this.#recovered(`${node.id} is back at ${urlOf(node.port)}`),
        () => {},
      )
    })
  }

  #watchPostgres(postgres: EmbeddedPostgres): void {
    void postgres.exited.then(async ({ expected }) => {
      if (expected || !(await this.#pause('PostgreSQL ended; starting it again'))) return
      const { dataDir, port } = postgres
      for (;;) {
        try {
          // On the same port: the nodes look for it where it was.
          this.#postgres = await startEmbeddedPostgres({ dataDir, port })
          break
        } catch (error) {
          if (!(await this.#pause(`PostgreSQL did not start: ${(error as Error).message}`))) return
        }
      }
      if (this.#stopping.signal.aborted) return this.#postgres.stop()
      this.#watchPostgres(this.#postgres)
      await this.#recovered(`PostgreSQL is back at ${this.#postgres.url}`)
    })
  }

  /** Says what happened and waits before it is mended. False: everything is being stopped. */
  async #pause(line: string): Promise<boolean> {
    const { signal } = this.#stopping
    if (signal.aborted) return false
    this.#options.say(`Rouse: ${line} in one second`)
    await delay(restartMs, undefined, { signal }).catch(() => {})
    return !signal.aborted
  }

  async #recovered(line: string): Promise<void> {
    if (this.#stopping.signal.aborted) return
    await this.#describe()
    this.#options.say(`Rouse: ${line}`)
  }

  async #describe(): Promise<void> {
    if (this.#postgres === undefined) return
    await this.#file.write({
      url: this.url,
      nodes: this.#nodes.map(({ id, port, process }) => {
        return { id, url: urlOf(port), pid: process.pid, gossip: `${host}:${port + 1}` }
      }),
      postgres: { url: this.#postgres.url, pid: this.#postgres.pid },
    })
  }

  #sayReady(postgresUrl: string): void {
    const { say, dataDir } = this.#options
    say(`Rouse is ready: ${this.url}`)
    for (const { id, port } of this.#nodes) say(`  ${id.padEnd(12)} ${urlOf(port)}`)
    say(`  PostgreSQL   ${postgresUrl}`)
    say(`  figures      ${this.url}/stats?scope=cluster`)
    say(`  logs         ${join(dataDir, 'node-*.log')}`)
    say('')
    say('Push a message, then pop it (the pop waits for one):')
    say(
      `  curl ${this.url}/api/v1/push -H 'content-type: application/json' ` +
        `-d '{"items":[{"queue":"hello","payload":{"n":1}}]}'`,
    )
    say(`  curl '${this.url}/api/v1/pop/queue/hello?wait=true&autoAck=true'`)
    say('')
  }
}

function urlOf(port: number): string {
  return `http://${host}:${port}`
}
