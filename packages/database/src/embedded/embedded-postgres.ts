// A real PostgreSQL for development and tests: version 18, unless the caller supplies another one.
import { setTimeout as delay } from 'node:timers/promises'
import { findBinaries, type PostgresBinaries } from './binaries.ts'
import { type DataFolder, prepareDataFolder, removeIfTemporary } from './data-folder.ts'
import { EmbeddedPostgresError } from './embedded-error.ts'
import { freePort } from './free-port.ts'
import { clearPreviousServer } from './previous-server.ts'
import { type EmbeddedPostgres, RunningPostgres } from './running-postgres.ts'
import { spawnServer } from './server-process.ts'
import { startWatchdog } from './watchdog.ts'

export interface EmbeddedPostgresOptions {
  /** Where the data is kept. By default the data is in a temporary folder, which is removed at stop. */
  readonly dataDir?: string
  /** Where the temporary folder is created. Default: the system's folder for temporary files. */
  readonly temporaryIn?: string | undefined
  /** By default, or with 0, a free port. */
  readonly port?: number
  /** A folder with `bin` and `lib`, like `native` in the npm packages. Default: PostgreSQL 18. */
  readonly programsFolder?: string
  /** Settings as in postgresql.conf; they override the defaults. */
  readonly settings?: Readonly<Record<string, string>>
  /** Added to the server's environment, for example for a test that preloads a library. */
  readonly env?: Readonly<Record<string, string>>
  /** Receives the server's log, line by line. */
  readonly log?: (line: string) => void
}

const embeddedSettingsDefault = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '128MB',
} as const

const startAttemptsMax = 50
const startRetryMs = 100

export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions = {},
): Promise<EmbeddedPostgres> {
  const binaries = await findBinaries(options.programsFolder)
  const folder = await prepareDataFolder(binaries, options)
  await clearPreviousServer(folder.path)
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(binaries, folder, options)
    } catch (error) {
      if (!isPassing(error, options) || attempt === startAttemptsMax) {
        await removeIfTemporary(folder)
        throw error
      }
      await delay(startRetryMs)
    }
  }
}

async function startOnce(
  binaries: PostgresBinaries,
  folder: DataFolder,
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const port = options.port || (await freePort())
  const server = spawnServer({
    program: binaries.postgres,
    dataDir: folder.path,
    port,
    settings: { ...embeddedSettingsDefault, ...options.settings },
    env: options.env,
    log: options.log,
  })
  // The watchdog starts before the server is ready, so that a launcher killed in between leaves no server.
  const watchdog = startWatchdog(server.child.pid, folder)
  try {
    await server.ready
  } catch (error) {
    watchdog.dismiss()
    throw error
  }
  return new RunningPostgres({ pgCtl: binaries.pgCtl, folder, server, watchdog, port })
}

/** Two failures are transient: another process may take a free port before the server binds it, and after a
 * SIGKILL the old server's children need a moment to release its shared memory. */
function isPassing(error: unknown, options: EmbeddedPostgresOptions): boolean {
  if (!(error instanceof EmbeddedPostgresError)) return false
  if (/pre-existing shared memory block .* is still in use/.test(error.message)) return true
  return !options.port && /could not (bind|create any TCP)/.test(error.message)
}
