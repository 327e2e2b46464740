import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { findBinaries } from '../../src/embedded/binaries.ts'
import { isRoot, serverUser } from '../../src/embedded/server-user.ts'

test('the packaged programs run in place', async (t) => {
  const { initdb } = await findBinaries()
  t.match(execFileSync(initdb, ['--version'], serverUser()).toString(), /PostgreSQL\) 18/)
})

test('programs in a folder that only root can read are copied once', {
  skip: !isRoot(),
}, async (t) => {
  const packaged = dirname(dirname((await findBinaries()).initdb))
  const closed = mkdtempSync(join(tmpdir(), 'rouse-closed-'))
  t.teardown(() => rmSync(closed, { recursive: true, force: true }))
  // Copy without the symbolic links, as if install scripts were disabled.
  cpSync(packaged, join(closed, 'native'), {
    recursive: true,
    filter: (path) => !/\.so(\.\d+)?$/.test(path) || path.includes('/postgresql/'),
  })
  writeFileSync(join(closed, 'package.json'), `{ "test": ${process.pid} }`)

  const { initdb } = await findBinaries(join(closed, 'native'))
  t.teardown(() => rmSync(dirname(dirname(initdb)), { recursive: true, force: true }))
  t.notOk(initdb.startsWith(closed))
  t.match(execFileSync(initdb, ['--version'], serverUser()).toString(), /PostgreSQL\) 18/)
  t.equal((await findBinaries(join(closed, 'native'))).initdb, initdb)
})
