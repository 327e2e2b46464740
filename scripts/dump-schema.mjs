// `npm run schema:snapshot`: migrates an empty database and writes its schema to
// migrations/schema.snapshot.txt.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './run.mjs'
import { setup } from './setup.mjs'

await setup()
const { createPool, migrate, startEmbeddedPostgres } = await import(
  '../packages/database/dist/index.js'
)
const postgres = await startEmbeddedPostgres()
try {
  await migrate({ url: postgres.url })
  const pool = createPool({ url: postgres.url, max: 1, applicationName: 'rouse schema snapshot' })
  const { rows } = await pool.query(readFileSync(join(root, 'scripts', 'dump-schema.sql'), 'utf8'))
  await pool.end()
  const lines = rows.map(({ line }) => `${line}\n`)
  writeFileSync(join(root, 'migrations', 'schema.snapshot.txt'), lines.join(''))
  console.log(`migrations/schema.snapshot.txt: ${lines.length} lines`)
} finally {
  await postgres.stop()
}
