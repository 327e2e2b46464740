// `npm start`: a PostgreSQL of its own in `--data DIR`, migrated, until a signal ends it.
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './run.mjs'
import { setup } from './setup.mjs'
import { untilStopped } from './until-stopped.mjs'

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: '.rouse' },
    port: { type: 'string' },
    nodes: { type: 'string' },
  },
})
const stopped = untilStopped()

await setup()
const { migrate, startEmbeddedPostgres } = await import('../packages/database/dist/index.js')
try {
  await runUntilStopped()
} catch (error) {
  // A code means that the message is meant for whoever reads it here.
  console.error('code' in error ? `Rouse: ${error.message}` : error)
  process.exitCode = 1
}

async function runUntilStopped() {
  const dataDir = resolve(root, values.data, 'postgres')
  const postgres = await startEmbeddedPostgres({ dataDir })
  try {
    const { applied } = await migrate({ url: postgres.url })
    console.log(
      `Rouse: PostgreSQL is ready at ${postgres.url} (${applied.length} migrations applied)`,
    )
    const reason = await Promise.race([stopped, postgres.exited])
    if (typeof reason !== 'string') throw new Error('PostgreSQL ended by itself')
  } finally {
    await postgres.stop()
  }
}
