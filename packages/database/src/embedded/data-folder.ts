// Prepares the data folder of a server: creates and initialises it, and gives the server access.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import {
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
} from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { postgresMajorMin } from '../server-version.ts'
import type { PostgresBinaries } from './binaries.ts'
import { EmbeddedPostgresError } from './embedded-error.ts'
import { serverEnvironment } from './server-environment.ts'
import { makeServerFolder, reachableTmpdir, serverCanReach, serverUser } from './server-user.ts'

export interface DataFolder {
  readonly path: string
  /** A temporary folder is removed when the server stops, or by the watchdog when the launcher dies. */
  readonly temporary: boolean
}

/** See EmbeddedPostgresOptions. */
export interface FolderOptions {
  readonly dataDir?: string
  readonly temporaryIn?: string | undefined
}

export async function prepareDataFolder(
  binaries: PostgresBinaries,
  options: FolderOptions,
): Promise<DataFolder> {
  const folder = await chooseFolder(options)
  try {
    if (existsSync(join(folder.path, 'PG_VERSION'))) await checkVersion(binaries, folder.path)
    else await initialise(binaries, folder.path)
    return folder
  } catch (error) {
    await removeIfTemporary(folder)
    throw error
  }
}

export async function removeIfTemporary({ path, temporary }: DataFolder): Promise<void> {
  if (temporary) await rm(path, { recursive: true, force: true, maxRetries: 5 })
}

async function chooseFolder({ dataDir, temporaryIn }: FolderOptions): Promise<DataFolder> {
  if (dataDir === undefined) {
    const parent = temporaryIn ?? (await reachableTmpdir())
    const path = await mkdtemp(join(parent, 'rouse-postgres-'))
    await makeServerFolder(path)
    return { path, temporary: true }
  }
  const wanted = resolve(dataDir)
  const parent = dirname(wanted)
  await mkdir(parent, { recursive: true })
  if (await serverCanReach(parent)) return { path: await resolved(wanted), temporary: false }
  return { path: await keepElsewhere(wanted), temporary: false }
}

/** PostgreSQL reports its folder by the real path, so a search for its processes must use that path. */
async function resolved(path: string): Promise<string> {
  return (await lstat(path).catch(() => undefined)) === undefined ? path : realpath(path)
}

/** The server cannot reach the requested folder, for example because it is in root's home. The data is kept
 * under /var/lib instead, with a link in the requested place. */
async function keepElsewhere(wanted: string): Promise<string> {
  if (existsSync(wanted)) return realpath(wanted)
  const hash = createHash('sha256').update(wanted).digest('hex').slice(0, 12)
  const path = join('/var/lib/rouse', `postgres-${hash}`)
  await mkdir(dirname(path), { recursive: true, mode: 0o755 })
  await rm(wanted, { force: true })
  await symlink(path, wanted)
  return path
}

async function checkVersion(binaries: PostgresBinaries, path: string): Promise<void> {
  const version = (await readFile(join(path, 'PG_VERSION'), 'utf8')).trim()
  const majorVersion = await majorVersionOf(binaries)
  if (version === majorVersion) return
  if (Number(version) < postgresMajorMin) {
    throw new EmbeddedPostgresError(
      'postgres_too_old',
      `${path} holds data of PostgreSQL ${version}, which is too old: Rouse needs ${postgresMajorMin} or newer (postgres_too_old)`,
    )
  }
  throw new EmbeddedPostgresError(
    'data_dir_version',
    `${path} holds data of PostgreSQL ${version}, which PostgreSQL ${majorVersion} cannot use`,
  )
}

async function majorVersionOf({ postgres }: PostgresBinaries): Promise<string> {
  const { stdout } = await promisify(execFile)(postgres, ['--version'], {
    ...serverUser(),
    cwd: dirname(postgres),
    env: serverEnvironment(),
  })
  return /(\d+)\.\d+/.exec(stdout)?.[1] ?? stdout.trim()
}

/** Initialises a new folder next to `path` and then renames it, so that a partial folder never remains. */
async function initialise(binaries: PostgresBinaries, path: string): Promise<void> {
  if (existsSync(path) && (await readdir(path)).length > 0) {
    throw new EmbeddedPostgresError('data_dir_foreign', `${path} is not a PostgreSQL data folder`)
  }
  const fresh = `${path}.init-${process.pid}`
  await rm(fresh, { recursive: true, force: true })
  await makeServerFolder(fresh)
  try {
    await promisify(execFile)(
      binaries.initdb,
      // Trust is safe here: the server listens on the loopback address only.
      ['-D', fresh, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
      { ...serverUser(), cwd: dirname(fresh), env: serverEnvironment() },
    )
    await rename(fresh, path)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    if (existsSync(join(path, 'PG_VERSION'))) return
    const stderr = error instanceof Error && 'stderr' in error ? `: ${String(error.stderr)}` : ''
    throw new EmbeddedPostgresError('init_failed', `initdb failed in ${path}${stderr}`, {
      cause: error,
    })
  }
}
