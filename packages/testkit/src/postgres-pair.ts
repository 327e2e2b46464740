// A primary and its streaming standby, both real servers, that can swap roles.
//
//   primary runs, standby streams   --- promoteStandby -->   new primary, the other server unchanged
//   new primary runs                --- rebuildStandby -->   the other server is its standby, from a new copy
//
// With `synchronous` a commit waits for the standby. After promoteStandby, commits wait for no standby until
// rebuildStandby has made one. A failover manager would configure the servers in the same way.
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeServerFolder, reachableTmpdir } from '@rouse/database'
import { testServerSettings } from './embedded-source.ts'
import { eventually } from './eventually.ts'
import { memoryFolder } from './memory-folder.ts'
import { createPostgresServer, type PostgresServer } from './postgres-server.ts'
import { copyAsStandby } from './standby-copy.ts'

type PairSettings = Readonly<Record<string, string>>

export interface PostgresPairOptions {
  /** Whether a commit waits until the standby has it on disk. */
  readonly synchronous?: boolean
  /** The folder of both servers. It is kept, and must be accessible to the server's user. Default: a
   * temporary folder, which `stop` removes. */
  readonly folder?: string
  /** As in postgresql.conf. The defaults turn durability off: `{ fsync: 'on' }` turns it on. */
  readonly settings?: PairSettings
  /** Added to the environment of both servers, e.g. LD_PRELOAD. */
  readonly env?: Readonly<Record<string, string>>
  readonly log?: (line: string) => void
  /** As in TestPostgresOptions. */
  readonly major?: number | undefined
}

export interface PostgresPair {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
  /** Both servers, for clients that find the one that accepts writes. */
  readonly url: string
  /** Both servers as a multi-host URL of this database. */
  urlOf(database: string): string
  /** Promotes the standby and waits until it accepts writes. Fence the old primary first. */
  promoteStandby(): Promise<void>
  /** Stops the other server, if it runs, and makes it a standby of the primary from a new copy. */
  rebuildStandby(): Promise<void>
  /** Waits until the standby streams and has everything that the primary wrote before this call. */
  inSync(): Promise<void>
  /** Safe to call twice, and with frozen or killed servers. */
  stop(): Promise<void>
}

const pairSettings = {
  ...testServerSettings,
  // Enough WAL for a standby that was away for a while, and for the duration of a copy.
  wal_keep_size: '512MB',
  wal_retrieve_retry_interval: '200ms',
}
/** Long, because a slow or busy machine replays slowly. */
const patience = { timeoutMs: 120_000, intervalMs: 50 }

export async function startPostgresPair(options: PostgresPairOptions = {}): Promise<PostgresPair> {
  const folder = options.folder ?? (await temporaryFolder(options.settings))
  const server = (name: string) =>
    createPostgresServer({
      name,
      dataDir: join(folder, name),
      settings: { ...pairSettings, ...options.settings },
      env: options.env ?? {},
      log: options.log,
      major: options.major,
    })
  const servers = await Promise.all([server('rouse_a'), server('rouse_b')])
  let [primary, standby] = servers

  async function rebuildStandby(): Promise<void> {
    await standby.kill()
    await waitForNobody(primary)
    await copyAsStandby(primary, standby)
    await standby.start()
    await inSync()
  }
  async function inSync(): Promise<void> {
    if (options.synchronous === true) await waitFor(primary, standby)
    await caughtUp(primary, standby, options.synchronous === true)
  }
  async function stop(): Promise<void> {
    await Promise.all(servers.map((one) => one.stop()))
    if (options.folder === undefined) await rm(folder, { recursive: true, force: true })
  }
  const urlOf = (database: string) => {
    const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(',')
    return `postgres://postgres@${hosts}/${database}?target_session_attrs=read-write`
  }

  try {
    await primary.start()
    await rebuildStandby()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    get primary() {
      return primary
    },
    get standby() {
      return standby
    },
    url: urlOf('postgres'),
    urlOf,
    async promoteStandby() {
      await promote(standby)
      ;[primary, standby] = [standby, primary]
    },
    rebuildStandby,
    inSync,
    stop,
  }
}

async function temporaryFolder(settings: PairSettings = {}): Promise<string> {
  // A pair that flushes to disk is there to measure or test the disk.
  const inMemory = settings.fsync === 'on' ? undefined : await memoryFolder()
  const folder = await mkdtemp(join(inMemory ?? (await reachableTmpdir()), 'rouse-pair-'))
  await makeServerFolder(folder)
  return folder
}

/** Repeats the query until it succeeds, because WAL replay may cancel the session that runs it. */
async function promote(standby: PostgresServer): Promise<void> {
  await eventually(async () => {
    const [row] = await standby.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
    if (row?.standby === false) return true
    await standby.query('select pg_promote(wait => false)')
    return false
  }, patience)
  // The new primary must not wait for the standby of the old primary.
  await waitForNobody(standby)
}

async function waitFor(primary: PostgresServer, standby: PostgresServer): Promise<void> {
  await setSynchronous(primary, standby.name)
}

async function waitForNobody(primary: PostgresServer): Promise<void> {
  await setSynchronous(primary, '')
}

async function setSynchronous(primary: PostgresServer, names: string): Promise<void> {
  await primary.query(`alter system set synchronous_standby_names = '${names}'`)
  await primary.query('select pg_reload_conf()')
}

async function caughtUp(
  primary: PostgresServer,
  standby: PostgresServer,
  synchronous: boolean,
): Promise<void> {
  const [now] = await primary.query<{ lsn: string }>('select pg_current_wal_lsn() as lsn')
  await eventually(async () => {
    const [row] = await primary.query<{ ready: boolean }>(
      `select state = 'streaming' and replay_lsn >= '${now?.lsn}'
         and (sync_state <> 'async') = ${synchronous} as ready
       from pg_stat_replication where application_name = '${standby.name}'`,
    )
    return row?.ready
  }, patience)
}
