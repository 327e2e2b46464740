// If the server ends the session during a commit, the outcome is unknown: recovery may restore a commit
// whose flush failed.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  classifyPostgresError,
  createPool,
  makeServerFolder,
  provesNotCommitted,
  reachableTmpdir,
} from '@rouse/database'
import { startTestPostgres } from '@rouse/testkit'
import { t as file, test } from 'tap'
import { buildFsyncShim } from '../../chaos/disk/fsync-shim.ts'

const tools = await mkdtemp(join(tmpdir(), 'rouse-flush-'))
await chmod(tools, 0o755)
file.teardown(() => rm(tools, { recursive: true, force: true }))
const shim = await buildFsyncShim(tools).catch(() => undefined)
const skip = shim === undefined ? 'there is no C compiler to make flushes fail' : false

test('a commit whose flush failed has an unknown outcome: recovery may restore it', {
  skip,
}, async (t) => {
  if (shim === undefined) return
  const parent = await mkdtemp(join(await reachableTmpdir(), 'rouse-flush-'))
  t.teardown(() => rm(parent, { recursive: true, force: true }))
  await makeServerFolder(parent)
  const dataDir = join(parent, 'data')

  const settings = {
    restart_after_crash: 'off',
    wal_sync_method: 'fdatasync',
    // Background processes flush nothing during the test, so that the commit is what fails.
    autovacuum: 'off',
    wal_writer_delay: '10s',
    bgwriter_delay: '10s',
  }
  const server = await startTestPostgres({ dataDir, settings, env: shim.env })
  t.teardown(() => server.stop())
  const pool = createPool({ url: server.url, max: 1, applicationName: 'flush' })
  t.teardown(() => pool.end())
  await pool.query('create table public.log (line text)')
  await shim.harm('fail')
  const failure = await pool
    .query(`insert into public.log values ('not answered')`)
    .catch((error: unknown) => error)
  t.match(failure, { severity: 'PANIC' })
  t.equal(classifyPostgresError(failure), 'unavailable')
  t.equal(provesNotCommitted(failure), false)
  await server.exited

  await shim.heal()
  const again = await startTestPostgres({ dataDir })
  t.teardown(() => again.stop())
  const later = createPool({ url: again.url, max: 1, applicationName: 'flush' })
  t.teardown(() => later.end())
  const { rows } = await later.query('select line from public.log')
  t.same(rows, [{ line: 'not answered' }], 'and here it did')
})
