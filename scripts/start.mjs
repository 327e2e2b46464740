// `npm start [-- --nodes N --port P --data DIR]`: a cluster on a PostgreSQL of its own, until a signal ends it.
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './run.mjs'
import { setup } from './setup.mjs'
import { untilStopped } from './until-stopped.mjs'

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: '.rouse' },
    port: { type: 'string', default: '4600' },
    nodes: { type: 'string', default: '3' },
  },
})
const stopped = untilStopped()

await setup()
const { DevCluster } = await import('../apps/broker/dist/index.js')
try {
  await runUntilStopped()
} catch (error) {
  // A code means that the message is meant for whoever reads it here.
  console.error('code' in error ? `Rouse: ${error.message}` : error)
  process.exitCode = 1
}

async function runUntilStopped() {
  const cluster = new DevCluster({
    nodes: Number(values.nodes),
    port: Number(values.port),
    dataDir: resolve(root, values.data),
    say: (line) => console.log(line),
  })
  try {
    await Promise.race([cluster.start(), stopped])
    await stopped
  } finally {
    await cluster.stop()
  }
}
