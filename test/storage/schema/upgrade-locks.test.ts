// An upgrade can replace the functions while users' transactions are open: it needs no lock that they hold.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate, migrationsDirectory } from '@rouse/database'
import { ackIn, enqueue, promoteDue } from '@rouse/storage'
import { type Test, test } from 'tap'
import { openStorage, payloads } from '../support/storage.ts'

test('a new set of functions is applied while transactions of every kind are open', async (t) => {
  const { begin, pool, send, take, lease } = await openStorage(t)
  await send('q', 'p', ['a', 'b'])
  const { leaseId } = await lease('q')
  const user = await begin()
  await enqueue(user, { queue: 'q', partition: 'p', payload: '"c"' })
  await ackIn(user, leaseId)
  const node = await begin()
  await send('r', 'p', ['d'], node)
  await take('r', { on: node })

  const waits: unknown[] = []
  const directory = nextRelease(t)
  const began = performance.now()
  const { functions } = await migrate({ pool, directory, onWait: (wait) => waits.push(wait) })
  t.comment(`${functions.length} files in ${Math.round(performance.now() - began)} ms`)
  t.ok(functions.length > 40)
  t.same(waits, [], 'it asked for no lock that was taken')

  await user.query('commit')
  await node.query('commit')
  await promoteDue(pool)
  t.same(payloads(await take('q', { batch: 9 })), ['b', 'c'])
})

test('triggers exist once, however often functions are applied', async (t) => {
  const { pool } = await openStorage(t)
  await migrate({ pool, directory: nextRelease(t) })
  const { rows } = await pool.query(
    `select tgrelid::regclass::text as table, tgname as name from pg_trigger
     where not tgisinternal order by 1, 2`,
  )
  t.same(rows, [
    { table: 'rouse.freed', name: 'freed_notifies' },
    { table: 'rouse.scheduled', name: 'scheduled_notifies' },
  ])
})

/** Copies the migrations of this release, with the VERSION of the next release. */
function nextRelease(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'rouse-next-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  cpSync(migrationsDirectory, directory, { recursive: true })
  const file = join(directory, 'functions/VERSION')
  writeFileSync(file, String(Number(readFileSync(file, 'utf8')) + 1))
  return directory
}
