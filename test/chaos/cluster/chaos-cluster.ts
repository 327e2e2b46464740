// Three real nodes on a real database, with a relay on every connection between them, so that every kind of
// fault can be injected.
import { createWriteStream, type WriteStream } from 'node:fs'
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Balancer, type ReadinessWatch, startBalancer, watchReadiness } from '@rouse/broker'
import { createPool, migrate } from '@rouse/database'
import { type DiskImage, mountDisk } from '../disk/disk.ts'
import { buildFsyncShim, type FsyncShim } from '../disk/fsync-shim.ts'
import { freePorts } from '../network/free-ports.ts'
import { startTcpRelay, type TcpRelay } from '../network/tcp-relay.ts'
import { startUdpRelay, type UdpRelay } from '../network/udp-relay.ts'
import { ChaosNode } from './chaos-node.ts'
import { ChaosPostgres, withoutFlushes } from './chaos-postgres.ts'
import { heal, healMsMax, untilAllHear } from './healing.ts'

export interface ChaosClusterOptions {
  /** The folder for data, logs and sockets; the caller removes it. */
  readonly folder: string
  readonly standby: 'sync' | 'async' | 'none'
  readonly log: (line: string) => void
  /** Extra environment of every node, e.g. NODE_OPTIONS with a loader hook (seeded bugs). */
  readonly nodeEnv?: Readonly<Record<string, string>>
  /** Runs once on the migrated database, before the nodes start (seeded bugs in SQL functions). */
  readonly afterMigrate?: (databaseUrl: string) => Promise<void>
  /** False: commits are flushed late, so that a power loss loses the newest. Default true. */
  readonly durable?: boolean
  /**
   * Puts the data of PostgreSQL on a disk that can fill up, lose power and slow down, if this machine permits
   * that. Default true; a run without such faults starts faster without it.
   */
  readonly faultyDisk?: boolean
  /** The major version of PostgreSQL; default: the newest that Rouse supports. */
  readonly postgresMajor?: number | undefined
}

export interface ChaosCluster {
  /** The balancer, behind a TCP relay that can lose responses. */
  readonly clientUrl: string
  /** Each node behind its own TCP relay, for clients that are configured with several nodes. */
  readonly nodeUrls: readonly string[]
  /** For SQL producers: a multi-host URL, target_session_attrs=read-write. */
  readonly sqlUrl: string
  readonly nodes: readonly ChaosNode[]
  readonly postgres: ChaosPostgres
  readonly wires: ChaosWires
  /**
   * `disk` and `fsync` are undefined if they were not requested or this machine does not permit them; `lacks`
   * has the reason.
   */
  readonly disk: DiskImage | undefined
  readonly fsync: FsyncShim | undefined
  readonly lacks: { readonly disk?: string | undefined; readonly fsync?: string | undefined }
  /** A file with the number of milliseconds for which SIGUSR2 blocks a process of a node. */
  readonly stallFile: string
  /** Set when the client processes start, so that `client-kill` can kill one. */
  clients: { killOne(random: () => number): Promise<string> } | undefined
  /** Ends all faults and waits until all nodes are ready and gossip works between them. */
  heal(): Promise<void>
  stop(): Promise<void>
}

export interface ChaosWires {
  /** Between clients and the balancer, and between clients and each node. */
  readonly clients: readonly TcpRelay[]
  /** By node: its relays to each database server, in the order of `postgres.servers`. */
  readonly database: readonly (readonly TcpRelay[])[]
  /** The relays of SQL producers to each database server. */
  readonly sql: readonly TcpRelay[]
  readonly gossip: UdpRelay
}

const host = '127.0.0.1'
const nodeCount = 3
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
  /** The cleanup steps, which run in reverse order. */
  readonly #undo: (() => unknown)[] = []

  constructor(options: ChaosClusterOptions) {
    this.#options = options
  }

  async build(): Promise<ChaosCluster> {
    const { folder } = this.#options
    await mkdir(folder, { recursive: true })
    // PostgreSQL may run as another user, which needs access to the folder.
    await chmod(folder, 0o755)
    const { disk, fsync, lacks } = await this.#prepareDisk()
    const ports = await freePorts(2 * nodeCount)
    const httpPorts = ports.slice(0, nodeCount)
    const gossipPorts = ports.slice(nodeCount)
    const postgres = await this.#startPostgres(disk, fsync)
    await this.#migrate(postgres)
    await disk?.flush()
    const gossip = await this.#own(startUdpRelay(gossipPorts))
    const database: TcpRelay[][] = []
    const nodes: ChaosNode[] = []
    for (const [i, port] of httpPorts.entries()) {
      const relays = await this.#databaseRelays(postgres)
      database.push(relays)
      const settings = {
        ROUSE_DATABASE_URL: databaseUrl(relays),
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
    const sql = await this.#databaseRelays(postgres)
    const [front = '', ...nodeUrls] = clients.map(({ port }) => `http://${host}:${port}`)
    const parts = { nodes, postgres, wires: { clients, database, sql, gossip }, disk, fsync }
    await untilAllHear(nodes)
    return {
      ...parts,
      lacks,
      clientUrl: front,
      nodeUrls,
      sqlUrl: databaseUrl(sql),
      stallFile: this.#stallFile,
      clients: undefined,
      heal: () => heal(parts),
      stop: () => this.stop(),
    }
  }

  async stop(): Promise<void> {
    for (const undo of this.#undo.splice(0).reverse()) {
      await Promise.resolve(undo()).catch((error: Error) => {
        this.#options.log(`error while stopping: ${error.message}`)
      })
    }
  }

  async #prepareDisk(): Promise<Pick<ChaosCluster, 'disk' | 'fsync' | 'lacks'>> {
    const { folder, faultyDisk = true } = this.#options
    if (!faultyDisk) {
      const unwanted = 'a cluster that was started with a faulty disk'
      return { disk: undefined, fsync: undefined, lacks: { disk: unwanted, fsync: unwanted } }
    }
    const [fsync, noFsync] = await orReason(buildFsyncShim(folder))
    const [disk, noDisk] = await orReason(this.#own(mountDisk(folder)))
    return { disk, fsync, lacks: { disk: noDisk, fsync: noFsync } }
  }

  async #startPostgres(
    disk: DiskImage | undefined,
    fsync: FsyncShim | undefined,
  ): Promise<ChaosPostgres> {
    const { folder, standby, durable = true, postgresMajor: major } = this.#options
    const file = this.#logFile('postgres.log')
    const postgres = await ChaosPostgres.start({
      folder: join(disk?.path ?? folder, 'postgres'),
      standby,
      durable,
      disk,
      major,
      env: fsync?.env ?? {},
      log: (line) => file.write(`${line}\n`),
    })
    this.#undo.push(() => postgres.stop())
    return postgres
  }

  async #migrate({ url }: ChaosPostgres): Promise<void> {
    const pool = createPool({ url, max: 1, applicationName: 'chaos' })
    try {
      await migrate({ pool })
      if (this.#options.durable === false) await pool.query(withoutFlushes)
    } finally {
      await pool.end()
    }
    await this.#options.afterMigrate?.(url)
  }

  #startNode(id: string, port: number, settings: Readonly<Record<string, string>>): ChaosNode {
    const { folder, log, nodeEnv = {} } = this.#options
    const env = {
      ...settings,
      ...nodeSettings,
      ROUSE_NODE_ID: id,
      CHAOS_STALL_FILE: this.#stallFile,
      ...nodeEnv,
      NODE_OPTIONS: `--import=${stallHook} ${nodeEnv.NODE_OPTIONS ?? ''}`.trim(),
    }
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

  #databaseRelays({ servers }: ChaosPostgres): Promise<TcpRelay[]> {
    return Promise.all(servers.map(({ server }) => this.#relay(() => server.port)))
  }

  #relay(to: () => number): Promise<TcpRelay> {
    return this.#own(startTcpRelay({ to }))
  }

  async #own<Part extends { stop(): Promise<void> }>(starting: Promise<Part>): Promise<Part> {
    const part = await starting
    this.#undo.push(() => part.stop())
    return part
  }

  get #stallFile(): string {
    return join(this.#options.folder, 'stall.txt')
  }

  #logFile(name: string): WriteStream {
    const file = createWriteStream(join(this.#options.folder, name), { flags: 'a' })
    this.#undo.push(() => new Promise((resolve) => file.end(resolve)))
    return file
  }
}

/** Resolves with the part, or with the reason why this machine does not permit it. */
async function orReason<Part>(
  making: Promise<Part>,
): Promise<[Part, undefined] | [undefined, string]> {
  try {
    return [await making, undefined]
  } catch (error) {
    return [
      undefined,
      (error as Error).message.trim().split('\n').at(-1) ?? 'an unknown requirement',
    ]
  }
}

const stallHook = new URL('stall-hook.mjs', import.meta.url).href

const nodeSettings = {
  ROUSE_WORKERS: '2',
  ROUSE_GOSSIP_SECRET: gossipSecret,
  ROUSE_LOG_LEVEL: 'info',
  // With these values, retention runs all the time, and large messages reach the size limit of a response.
  ROUSE_RETENTION_INTERVAL_MS: '1000',
  ROUSE_POP_MAX_BYTES: String(2 * 1024 * 1024),
}

function databaseUrl(relays: readonly TcpRelay[]): string {
  const hosts = relays.map(({ port }) => `${host}:${port}`).join(',')
  // Only a list of hosts has to be searched for the writable one.
  const search = relays.length > 1 ? '?target_session_attrs=read-write' : ''
  return `postgres://postgres@${hosts}/postgres${search}`
}
