// `npm start [-- --nodes N --port P --data DIR]`: a cluster with its own PostgreSQL, until a signal ends it.
import { resolve } from 'node:path'
import { root } from './run.mjs'
import { setup } from './setup.mjs'
import { FlagError, readStartFlags } from './start-flags.mjs'
import { untilStopped } from './until-stopped.mjs'

try {
  const flags = readStartFlags(process.argv.slice(2))
  const stopped = untilStopped()
  await setup()
  const { DevCluster } = await import('../apps/broker/dist/index.js')
  await runUntilStopped(DevCluster, flags, stopped)
} catch (error) {
  // An error with a code has a message for the user.
  const isForReader = error instanceof FlagError || 'code' in error
  console.error(isForReader ? `Rouse: ${error.message}` : error)
  // Exit at once: abandoned work may still be running.
  process.exit(1)
}

async function runUntilStopped(DevCluster, { nodes, port, data }, stopped) {
  const cluster = new DevCluster({
    nodes,
    port,
    dataDir: resolve(root, data),
    say: (line) => console.log(line),
  })
  try {
    await Promise.race([cluster.start(), stopped])
    await stopped
  } finally {
    await cluster.stop()
  }
}
