// `npm start`: a PostgreSQL of its own in `--data DIR`, migrated, until a signal ends it.
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './run.mjs'
import { setup } from './setup.mjs'

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: '.rouse' },
    port: { type: 'string' },
    nodes: { type: 'string' },
  },
})

await setup()
const { migrate, startEmbeddedPostgres } = await import('../packages/database/dist/index.js')
const postgres = await startEmbeddedPostgres({ dataDir: resolve(root, values.data, 'postgres') })
const { applied } = await migrate({ url: postgres.url })
console.log(`Rouse: PostgreSQL is ready at ${postgres.url} (${applied.length} migrations applied)`)

const ended = await Promise.race([
  new Promise((done) => process.once('SIGINT', () => done('signal'))),
  new Promise((done) => process.once('SIGTERM', () => done('signal'))),
  postgres.exited,
])
await postgres.stop()
if (ended !== 'signal') {
  console.error('Rouse: PostgreSQL ended by itself')
  process.exit(1)
}
