// Makes a standby of a running server. The embedded binaries lack pg_basebackup, so this copies the files
// itself, between pg_backup_start and pg_backup_stop.
import { chown, copyFile, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import type { PostgresServer } from './postgres-server.ts'

/** Files that are not copied, because they belong to one running server. The folders in `emptied` are created
 * empty, because their content belongs to one running server or is streamed. */
const leftOut = /^(postmaster\.(pid|opts)|rouse-launcher\.pid|postgresql\.auto\.conf|.*\.signal)$/
const emptied =
  /^(pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)$/
const temporary = /^pgsql_tmp/

export async function copyAsStandby(from: PostgresServer, to: PostgresServer): Promise<void> {
  await rm(to.dataDir, { recursive: true, force: true })
  // The backup lasts as long as the session that started it.
  const client = new pg.Client({ connectionString: from.url, application_name: 'rouse pair' })
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query(`select pg_backup_start('rouse pair', fast => true)`)
    await copyFolder(from.dataDir, to.dataDir, '')
    const { rows } = await client.query<{ labelfile: string }>(
      'select labelfile from pg_backup_stop(wait_for_archive => false)',
    )
    await writeOwned(from, to, 'backup_label', rows[0]?.labelfile ?? '')
  } finally {
    await client.end()
  }
  await writeOwned(from, to, 'standby.signal', '')
  await writeOwned(
    from,
    to,
    'postgresql.auto.conf',
    `primary_conninfo = 'host=127.0.0.1 port=${from.port} user=postgres application_name=${to.name}'\n`,
  )
}

async function copyFolder(from: string, to: string, inside: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 })
  await ownAs(from, to)
  if (emptied.test(inside)) return
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (temporary.test(entry.name) || (inside === '' && leftOut.test(entry.name))) continue
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    const path = inside === '' ? entry.name : `${inside}/${entry.name}`
    if (entry.isDirectory()) await copyUnlessGone(copyFolder(source, target, path))
    else await copyUnlessGone(copyFile(source, target).then(() => ownAs(source, target)))
  }
}

/** Ignores files that the server removes during the copy. WAL replay would remove them from the copy, too. */
async function copyUnlessGone(copying: Promise<void>): Promise<void> {
  try {
    await copying
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Gives the file the owner of `model`: root copies files for a server that runs as another user. */
async function ownAs(model: string, path: string): Promise<void> {
  const { uid, gid } = await stat(model)
  await chown(path, uid, gid)
}

async function writeOwned(
  from: PostgresServer,
  to: PostgresServer,
  name: string,
  text: string,
): Promise<void> {
  const path = join(to.dataDir, name)
  await writeFile(path, text, { mode: 0o600 })
  await ownAs(from.dataDir, path)
}
