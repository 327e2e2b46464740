// What `npm start` runs: an embedded PostgreSQL, nodes on it, and a balancer in front. Each part that dies is
// restarted after a second, so that users can try `kill -9`.
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '@rouse/database'
import { type Balancer, startBalancer } from './balancer.ts'
import { ClusterFile } from './cluster-file.ts'
import { makeDataFolder } from './data-folder.ts'
import { DevError } from './dev-error.ts'
import { type NodeProcess, startNode } from './node-process.ts'
import { type ReadinessWatch, watchReadiness } from './readiness-watch.ts'
import { readyBanner } from './ready-banner.ts'

export interface DevClusterOptions {
  readonly nodes: number
  /** The balancer's port, P. Node n listens on port P + 10 n and uses port P + 10 n + 1 for gossip. */
  readonly port: number
  readonly dataDir: string
  readonly say: (line: string) => void
  /** How long `stop` waits for a `start` in progress. */
  readonly startingMsMax?: number
}

interface DevNode {
  readonly id: string
  readonly port: number
  process: NodeProcess
  /** The process that the cluster file names. */
  named: NodeProcess
}

const host = '127.0.0.1'
const nodesMax = 16
const portStep = 10
const portMax = 65_535
const restartMs = 1_000
/** Longer than any successful start. */
const startingMsMaxDefault = 30_000
/**
 * After this time the cluster file names a restarted node even if it is not ready. A normal start is faster.
 */
const namedMsMax = 10_000

export class DevCluster {
  readonly #options: DevClusterOptions
  readonly #file: ClusterFile
  readonly #nodes: DevNode[] = []
  readonly #stopping = new AbortController()
  #postgres: EmbeddedPostgres | undefined
  #secretFile = ''
  #watch: ReadinessWatch | undefined
  #balancer: Balancer | undefined
  #started: Promise<void> | undefined
  #mending: Promise<void> | undefined
  #stopped: Promise<void> | undefined

  constructor(options: DevClusterOptions) {
    const { nodes, port } = options
    if (!(Number.isInteger(nodes) && nodes >= 1 && nodes <= nodesMax)) {
      throw new DevError('bad_argument', `--nodes must be a whole number from 1 to ${nodesMax}`)
    }
    const portHighest = portMax - (nodes + 1) * portStep
    if (!(Number.isInteger(port) && port >= 1 && port <= portHighest)) {
      throw new DevError('bad_argument', `--port must be a whole number from 1 to ${portHighest}`)
    }
    this.#options = options
    this.#file = new ClusterFile(join(options.dataDir, 'cluster.json'))
  }

  get url(): string {
    return urlOf(this.#options.port)
  }

  /** Resolves when every node is ready and the cluster file is written, or when `stop` is called first. */
  start(): Promise<void> {
    this.#started ??= this.#start()
    return this.#started
  }

  /** Resolves when nothing is left running. Idempotent. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #start(): Promise<void> {
    const steps: (() => Promise<void> | void)[] = [
      () => this.#prepareFolder(),
      () => this.#startPostgres(),
      () => this.#startNodes(),
      () => this.#balance(),
      () => this.#describe(),
      () => this.#sayReady(),
    ]
    for (const step of steps) {
      // A signal may come at any time: `stop` waits for the current step, and no further step starts.
      if (this.#stopping.signal.aborted) return
      await step()
    }
  }

  async #stop(): Promise<void> {
    this.#stopping.abort()
    await this.#untilStartIsOver()
    // If PostgreSQL never started, this process does not own the folder or the cluster file.
    if (this.#postgres !== undefined) await this.#file.remove()
    this.#watch?.stop()
    // Draining nodes still answer waiting pops through the balancer, so the open connections stay.
    this.#balancer?.close()
    await Promise.all(this.#nodes.map((node) => node.process.stop()))
    await this.#balancer?.stop()
    await this.#mending
    await this.#postgres?.stop()
  }

  /**
   * Waits until `start` has ended. Ignores its error, because `start` itself rejects with it. A start that
   * hangs is abandoned; the processes of that start end with this process.
   */
  async #untilStartIsOver(): Promise<void> {
    const { startingMsMax = startingMsMaxDefault } = this.#options
    const over = Promise.resolve(this.#started).then(isTrue, isTrue)
    const timer = new AbortController()
    const late = delay(startingMsMax, false, { signal: timer.signal }).catch(() => false)
    if (!(await Promise.race([over, late]))) {
      const problem = `the start took longer than ${startingMsMax / 1_000} s and was abandoned`
      throw new DevError('stuck', problem)
    }
    timer.abort()
  }

  async #prepareFolder(): Promise<void> {
    const { dataDir, nodes } = this.#options
    const logs = Array.from({ length: nodes }, (_, i) => this.#logFile(idOf(i)))
    this.#secretFile = await makeDataFolder(dataDir, logs)
    await this.#file.removeIfDead()
  }

  /**
   * PostgreSQL's lock admits one server per folder. The cluster that starts the server owns the cluster file.
   */
  async #startPostgres(): Promise<void> {
    this.#postgres = await startEmbeddedPostgres({
      dataDir: join(this.#options.dataDir, 'postgres'),
    })
    this.#watchPostgres(this.#postgres)
    await this.#file.remove()
  }

  async #startNodes(): Promise<void> {
    const { nodes, port } = this.#options
    for (let i = 0; i < nodes; i += 1) {
      const node = { id: idOf(i), port: port + (i + 1) * portStep }
      const process = this.#launch(node)
      this.#nodes.push({ ...node, process, named: process })
    }
    const ready = Promise.all(this.#nodes.map((node) => this.#untilServes(node)))
    await Promise.race([ready, once(this.#stopping.signal, 'abort')])
    for (const node of this.#nodes) this.#watchNode(node)
  }

  /** Restarts a node that was killed. Rejects if a node exits by itself, because it would fail again. */
  async #untilServes(node: DevNode): Promise<void> {
    while (!(await node.process.ready.then(isTrue, isFalse))) {
      const { how, isKilled } = await node.process.exited
      if (!isKilled) return node.process.ready
      if (!(await this.#pause(`${node.id} exited (${how}); restarting`))) return
      node.process = this.#launch(node)
      node.named = node.process
    }
  }

  #launch({ id, port }: { readonly id: string; readonly port: number }): NodeProcess {
    const node = startNode({
      id,
      port,
      gossipPort: port + 1,
      databaseUrl: this.#postgres?.url ?? '',
      gossipSecretFile: this.#secretFile,
      logFile: this.#logFile(id),
      onLogLost: (error) =>
        this.#say(`cannot write the log of ${id}, which keeps running: ${error.message}`),
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
    void node.process.exited.then(async ({ how }) => {
      if (!(await this.#pause(`${node.id} exited (${how}); restarting`))) return
      node.process = this.#launch(node)
      this.#watchNode(node)
      await this.#nameAgain(node)
    })
  }

  /**
   * The file names the old process until the new one is ready, because scripts for rolling restarts wait for
   * the new pid. Without PostgreSQL no node becomes ready, so after `namedMsMax` the file names the new
   * process in any case.
   */
  async #nameAgain(node: DevNode): Promise<void> {
    const { process } = node
    const name = async () => {
      if (node.process === process) node.named = process
      await this.#describe()
    }
    const late = setTimeout(() => void name(), namedMsMax)
    const isReady = await process.ready.then(isTrue, isFalse)
    clearTimeout(late)
    if (!isReady) return
    await name()
    this.#say(`${node.id} is back at ${urlOf(node.port)}`)
  }

  #watchPostgres(postgres: EmbeddedPostgres): void {
    void postgres.exited.then(({ expected }) => {
      if (!expected) this.#mending = this.#mend(postgres)
    })
  }

  async #mend({ dataDir, port }: EmbeddedPostgres): Promise<void> {
    let line = 'PostgreSQL exited; restarting'
    while (await this.#pause(line)) {
      try {
        // Uses the same port, because the nodes keep connecting there.
        this.#postgres = await startEmbeddedPostgres({ dataDir, port })
      } catch (error) {
        line = `PostgreSQL did not start: ${(error as Error).message}; retrying`
        continue
      }
      this.#watchPostgres(this.#postgres)
      await this.#describe()
      this.#say(`PostgreSQL is back at ${this.#postgres.url}`)
      return
    }
  }

  /** Reports a failure and waits before the restart. Returns false if the cluster is stopping. */
  async #pause(line: string): Promise<boolean> {
    const { signal } = this.#stopping
    this.#say(`${line} in one second`)
    await delay(restartMs, undefined, { signal }).catch(() => {})
    return !signal.aborted
  }

  /** Writes the cluster file. Does nothing before everything is up, and nothing during shutdown. */
  async #describe(): Promise<void> {
    if (this.#postgres === undefined || this.#balancer === undefined) return
    if (this.#stopping.signal.aborted) return
    await this.#file.write({
      url: this.url,
      nodes: this.#nodes.map(({ id, port, named }) => {
        return { id, url: urlOf(port), pid: named.pid, gossip: `${host}:${port + 1}` }
      }),
      postgres: { url: this.#postgres.url, pid: this.#postgres.pid },
    })
  }

  #logFile(id: string): string {
    return join(this.#options.dataDir, `${id}.log`)
  }

  #say(line: string): void {
    if (!this.#stopping.signal.aborted) this.#options.say(`Rouse: ${line}`)
  }

  #sayReady(): void {
    const { say, dataDir } = this.#options
    const nodes = this.#nodes.map(({ id, port }) => ({ id, url: urlOf(port) }))
    const postgresUrl = this.#postgres?.url ?? ''
    for (const line of readyBanner({ url: this.url, nodes, postgresUrl, dataDir })) say(line)
  }
}

const isTrue = () => true
const isFalse = () => false

function idOf(index: number): string {
  return `node-${index + 1}`
}

function urlOf(port: number): string {
  return `http://${host}:${port}`
}
