// Three real nodes on a real database, with a relay on every wire between them, so that everything
// can be broken that breaks in life.
import { createWriteStream, type WriteStream } from 'node:fs'
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Balancer, type ReadinessWatch, startBalancer, watchReadiness } from '@rouse/broker'
import { createPool, migrate } from '@rouse/database'
import { eventually } from '@rouse/testkit'
import { ChaosNode } from './chaos-node.ts'
import { ChaosPostgres } from './chaos-postgres.ts'
import { freePorts } from './free-ports.ts'
import { signal } from './processes.ts'
import { startTcpRelay, type TcpRelay } from './tcp-relay.ts'
import { startUdpRelay, type UdpRelay } from './udp-relay.ts'

export interface ChaosClusterOptions {
  /** Everything (data, logs, sockets) lives here; removed by the caller. */
  readonly folder: string
  readonly standby: 'sync' | 'async' | 'none'
  readonly log: (line: string) => void
  /** Extra environment of every node, e.g. NODE_OPTIONS with a loader hook (seeded bugs). */
  readonly nodeEnv?: Readonly<Record<string, string>>
  /** Runs once on the migrated database, before the nodes start (seeded bugs in SQL functions). */
  readonly afterMigrate?: (databaseUrl: string) => Promise<void>
  /** False: nothing is flushed to the disk, so a power loss must lose data. Default true. */
  readonly durable?: boolean
}

export interface ChaosCluster {
  /** Where clients go: the balancer, behind a TCP relay that can lose answers. */
  readonly clientUrl: string
  /** Each node, also behind that kind of relay: for clients that name several nodes. */
  readonly nodeUrls: readonly string[]
  /** For SQL producers: a multi-host URL, target_session_attrs=read-write. */
  readonly sqlUrl: string
  readonly nodes: readonly ChaosNode[]
  readonly postgres: ChaosPostgres
  readonly wires: ChaosWires
  /** Client processes register here, so that `client-kill` can hit them. */
  clients: { killOne(random: () => number): Promise<string> } | undefined
  /** Ends every standing fault and waits until all nodes are ready and hear each other. */
  heal(): Promise<void>
  stop(): Promise<void>
}

export interface ChaosWires {
  /** Clients and balancer, clients and each node. */
  readonly clients: readonly TcpRelay[]
  /** By node: between it and each server of the database. */
  readonly database: readonly (readonly TcpRelay[])[]
  readonly gossip: UdpRelay
}

const host = '127.0.0.1'
const nodeCount = 3
/** A machine may be busy with much else; what heals heals within seconds. */
const healMsMax = 120_000
const gossipSecret = 'a secret of the chaos tests alone'

export async function startChaosCluster(options: ChaosClusterOptions): Promise<ChaosCluster> {
  const building = new Building(options)
  try {
    return await building.build()
  } catch (error) {
    await building.stop()
    throw error
  }
}

class Building {
  readonly #options: ChaosClusterOptions
  /** Undone in reverse. */
  readonly #undo: (() => unknown)[] = []

  constructor(options: ChaosClusterOptions) {
    this.#options = options
  }

  async build(): Promise<ChaosCluster> {
    const { folder } = this.#options
    await mkdir(folder, { recursive: true })
    // The server may run as another user than we do.
    await chmod(folder, 0o755)
    const [postgresPort = 0, ...ports] = await freePorts(1 + 2 * nodeCount)
    const httpPorts = ports.slice(0, nodeCount)
    const gossipPorts = ports.slice(nodeCount)
    const postgres = await this.#startPostgres(postgresPort)
    await this.#migrate(postgres)
    const gossip = await this.#own(startUdpRelay(gossipPorts))
    const database: TcpRelay[][] = []
    const nodes: ChaosNode[] = []
    for (const [i, port] of httpPorts.entries()) {
      const relay = await this.#relay(() => postgres.port)
      database.push([relay])
      const settings = {
        ROUSE_DATABASE_URL: databaseUrl([relay]),
        ROUSE_PORT: String(port),
        ROUSE_GOSSIP_PORT: String(gossipPorts[i]),
        ROUSE_GOSSIP_ADVERTISE: `${host}:${gossip.ports[i]}`,
      }
      nodes.push(this.#startNode(`node-${i + 1}`, port, settings))
    }
    await Promise.all(nodes.map((node) => node.untilReady(healMsMax)))
    const balancer = await this.#startBalancer(nodes)
    const clients = [await this.#relay(() => balancer.port)]
    for (const node of nodes) clients.push(await this.#relay(() => node.port))
    const sql = await this.#relay(() => postgres.port)
    const [front = '', ...nodeUrls] = clients.map(({ port }) => `http://${host}:${port}`)
    const wires = { clients, database: [...database, [sql]], gossip }
    await untilAllHear(nodes)
    return {
      clientUrl: front,
      nodeUrls,
      sqlUrl: databaseUrl([sql]),
      nodes,
      postgres,
      wires,
      clients: undefined,
      heal: () => heal({ nodes, postgres, wires }),
      stop: () => this.stop(),
    }
  }

  async stop(): Promise<void> {
    for (const undo of this.#undo.splice(0).reverse()) {
      await Promise.resolve(undo()).catch((error: Error) => {
        this.#options.log(`while stopping: ${error.message}`)
      })
    }
  }

  async #startPostgres(port: number): Promise<ChaosPostgres> {
    const { folder, durable = true } = this.#options
    const file = this.#logFile('postgres.log')
    const postgres = new ChaosPostgres({
      dataDir: join(folder, 'postgres'),
      port,
      durable,
      log: (line) => file.write(`${line}\n`),
    })
    this.#undo.push(() => postgres.stop())
    await postgres.start()
    return postgres
  }

  async #migrate({ url }: ChaosPostgres): Promise<void> {
    const pool = createPool({ url, max: 1, applicationName: 'chaos' })
    try {
      await migrate({ pool })
    } finally {
      await pool.end()
    }
    await this.#options.afterMigrate?.(url)
  }

  #startNode(id: string, port: number, settings: Readonly<Record<string, string>>): ChaosNode {
    const { folder, log, nodeEnv = {} } = this.#options
    const env = { ...settings, ...nodeSettings, ROUSE_NODE_ID: id, ...nodeEnv }
    const node = new ChaosNode({ id, port, env, log, logFile: join(folder, `${id}.log`) })
    this.#undo.push(() => node.stop())
    node.start()
    return node
  }

  async #startBalancer(nodes: readonly ChaosNode[]): Promise<Balancer> {
    const watch: ReadinessWatch = watchReadiness(nodes.map(({ url }) => url))
    this.#undo.push(() => watch.stop())
    return this.#own(
      startBalancer({
        host,
        port: 0,
        backends: nodes.map(({ port }) => ({ host, port })),
        isReady: ({ port }) => watch.isReady(`http://${host}:${port}`),
      }),
    )
  }

  #relay(to: () => number): Promise<TcpRelay> {
    return this.#own(startTcpRelay({ to }))
  }

  async #own<Part extends { stop(): Promise<void> }>(starting: Promise<Part>): Promise<Part> {
    const part = await starting
    this.#undo.push(() => part.stop())
    return part
  }

  #logFile(name: string): WriteStream {
    const file = createWriteStream(join(this.#options.folder, name), { flags: 'a' })
    this.#undo.push(() => new Promise((resolve) => file.end(resolve)))
    return file
  }
}

const nodeSettings = {
  ROUSE_WORKERS: '2',
  ROUSE_GOSSIP_SECRET: gossipSecret,
  ROUSE_LOG_LEVEL: 'info',
}

function databaseUrl(relays: readonly TcpRelay[]): string {
  const hosts = relays.map(({ port }) => `${host}:${port}`).join(',')
  return `postgres://postgres@${hosts}/postgres`
}

type Healed = Pick<ChaosCluster, 'nodes' | 'postgres' | 'wires'>

async function heal({ nodes, postgres, wires }: Healed): Promise<void> {
  wires.gossip.heal()
  for (const relay of [...wires.clients, ...wires.database.flat()]) relay.set({ kind: 'forward' })
  for (const pid of [...postgres.pids(), ...nodes.flatMap((node) => node.pids())]) {
    signal(pid, 'SIGCONT')
  }
  await postgres.release()
  for (const node of nodes) node.release()
  await untilAllHear(nodes)
}

async function untilAllHear(nodes: readonly ChaosNode[]): Promise<void> {
  await eventually(
    async () => {
      const ready = await Promise.all(nodes.map((node) => node.isReady()))
      const stats = await Promise.all(nodes.map((node) => node.stats()))
      return (
        ready.every(Boolean) &&
        stats.every(
          ({ peers }) =>
            peers.filter(({ state, hearsUs }) => state === 'alive' && hearsUs).length ===
            nodes.length - 1,
        )
      )
    },
    { timeoutMs: healMsMax, intervalMs: 100 },
  )
}
