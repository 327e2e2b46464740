// The database of the cluster: a server and, optionally, its standby. Each keeps its port and its relays in
// every fault. A failover swaps their roles.
import { join } from 'node:path'
import { makeServerFolder } from '@rouse/database'
import {
  createPostgresServer,
  eventually,
  type PostgresPair,
  type PostgresServer,
  startPostgresPair,
} from '@rouse/testkit'
import type pg from 'pg'
import type { DiskImage } from '../disk/disk.ts'
import { within } from './deadline.ts'
import { SupervisedServer } from './supervised-server.ts'

export interface ChaosPostgresOptions {
  readonly folder: string
  readonly standby: 'sync' | 'async' | 'none'
  /** False: commits are flushed late, so that a power loss loses the newest. */
  readonly durable: boolean
  /** The disk that contains the folder, if it can lose power. */
  readonly disk: DiskImage | undefined
  readonly env: Readonly<Record<string, string>>
  /** The major version; default: the newest that Rouse supports. */
  readonly major: number | undefined
  /** The servers' own log. */
  readonly log: (line: string) => void
}

const rebuildMsMax = 240_000
const writableMsMax = 60_000
const answerMsMax = 8_000

export class ChaosPostgres {
  readonly standbyKind: 'sync' | 'async' | 'none'
  readonly disk: DiskImage | undefined
  /** In the order of their relays; which one is the primary changes. */
  readonly servers: readonly SupervisedServer[]
  readonly #pair: PostgresPair | undefined
  /** True while a failover has begun and the other server is not a standby yet. */
  #isAlone = false

  static async start(options: ChaosPostgresOptions): Promise<ChaosPostgres> {
    const { folder, standby, log, env, major } = options
    await makeServerFolder(folder)
    const settings = settingsOf(options)
    if (standby === 'none') {
      const dataDir = join(folder, 'rouse_a')
      const server = await createPostgresServer({
        name: 'rouse_a',
        dataDir,
        settings,
        env,
        log,
        major,
      })
      await server.start()
      return new ChaosPostgres(options, [server], undefined)
    }
    const synchronous = standby === 'sync'
    const pair = await startPostgresPair({ folder, synchronous, settings, env, log, major })
    return new ChaosPostgres(options, [pair.primary, pair.standby], pair)
  }

  private constructor(
    { standby, disk, log }: ChaosPostgresOptions,
    servers: readonly PostgresServer[],
    pair: PostgresPair | undefined,
  ) {
    this.standbyKind = standby
    this.disk = disk
    this.servers = servers.map((server) => new SupervisedServer(server, log))
    this.#pair = pair
    for (const server of this.servers) server.supervise()
  }

  /** The URL of the writable server, without a relay, for the harness itself. */
  get url(): string {
    return this.primary.server.url
  }

  get primary(): SupervisedServer {
    return this.#supervised(this.#pair?.primary)
  }

  get standby(): SupervisedServer | undefined {
    return this.#pair === undefined ? undefined : this.#supervised(this.#pair.standby)
  }

  /** The index of the server among the relays. */
  indexOf(server: SupervisedServer): number {
    return this.servers.indexOf(server)
  }

  /** Uses its own connection to the primary. Fails instead of waiting. */
  query<Row extends pg.QueryResultRow>(sql: string): Promise<Row[]> {
    return this.primary.server.query<Row>(sql)
  }

  async untilWritable(): Promise<void> {
    await eventually(() => this.query('select pg_current_xact_id()'), {
      timeoutMs: writableMsMax,
      intervalMs: 100,
    })
  }

  async untilInSync(): Promise<void> {
    await within(
      rebuildMsMax,
      'catching up of the standby',
      this.#pair?.inSync() ?? Promise.resolve(),
    )
  }

  /** Promotes the standby. The old primary must be dead or fenced, and stays down until `reunite`. */
  async promoteStandby(): Promise<void> {
    this.#isAlone = true
    this.primary.hold()
    if (this.#pair === undefined) throw new Error('there is no standby')
    await within(rebuildMsMax, 'promoting the standby', this.#pair.promoteStandby())
  }

  /** Makes the other server a standby of the primary again, from a new copy. */
  async reunite(): Promise<void> {
    if (this.#pair === undefined) return
    this.standby?.hold()
    await within(rebuildMsMax, 'making a new standby', this.#pair.rebuildStandby())
    // The copy is not flushed yet, and the primary relies on it from now on.
    await this.disk?.flush()
    await this.standby?.release()
    this.#isAlone = false
  }

  /** After any fault: both servers run, and the standby has caught up with the primary. */
  async heal(): Promise<void> {
    this.primary.server.thaw()
    await this.primary.release()
    // The other server starts only now, because it may be an old primary that does not know about the
    // failover.
    if (this.#isAlone) await this.reunite()
    this.standby?.server.thaw()
    await this.standby?.release()
    await Promise.all(this.servers.map(revive))
    await this.untilWritable()
    await this.untilInSync()
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()))
  }

  #supervised(wanted: PostgresServer | undefined): SupervisedServer {
    const found = this.servers.find(({ server }) => wanted === undefined || server === wanted)
    if (found === undefined)
      throw new Error('the pair has a server that this harness did not start')
    return found
  }
}

/**
 * PostgreSQL 18 can hang after two crashes in a row: the postmaster waits for io workers that never exit. The
 * harness kills the postmaster, as an operator would.
 */
async function revive(server: SupervisedServer): Promise<void> {
  const isUp = eventually(() => server.server.query('select 1'), {
    timeoutMs: answerMsMax,
    intervalMs: 100,
  })
  await isUp.catch(async () => {
    await server.kill()
    await server.start()
  })
}

function settingsOf({ durable }: ChaosPostgresOptions): Record<string, string> {
  return {
    fsync: 'on',
    full_page_writes: 'on',
    ...(durable ? {} : lateFlushes),
    max_connections: '200',
    max_wal_size: '512MB',
  }
}

/** Commits return at once and are flushed seconds later, so that a power loss loses whole transactions. */
const lateFlushes = {
  synchronous_commit: 'off',
  wal_writer_delay: '5s',
  wal_writer_flush_after: '1GB',
}

/**
 * Rouse's functions request a flush even if the server's settings do not. This statement removes that from
 * the functions.
 */
export const withoutFlushes = `
do $$
declare
  v_function text;
begin
  for v_function in
    select pg_get_functiondef(oid) from pg_proc
     where pronamespace = 'rouse'::regnamespace
       and prosrc like '%set_config(''synchronous_commit'', ''on''%'
  loop
    execute replace(v_function, $on$'synchronous_commit', 'on'$on$, $off$'synchronous_commit', 'off'$off$);
  end loop;
end $$`
