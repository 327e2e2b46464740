// `npm run test:compose`: builds the cluster of docker-compose.cluster.yml, runs load and faults against it,
// and always removes it. Needs a Docker engine and docker compose 2 or docker-compose 1.29.
import { ComposeCluster } from './compose/cluster.mjs'
import { steps } from './compose/steps.mjs'
import { untilStopped } from './until-stopped.mjs'

const stopped = untilStopped()
const cluster = await ComposeCluster.find()
if (cluster === undefined) {
  console.error('no Docker engine with docker compose found; npm run test:compose needs one')
  process.exit(1)
}
// A failed step may leave open requests, which fail when the cluster is removed. Their rejections must not
// end this program.
process.on('unhandledRejection', () => {})
let passed = 0
let failed = 0
let isStopped = false

console.log(`using ${cluster.command}`)
await Promise.race([runSteps(), stopped.then(interrupt)])
await report('nothing of the cluster is left', async () => {
  const left = await cluster.down()
  if (left !== '') throw new Error(`left behind: ${left}`)
})
console.log(`${passed} passed, ${failed} failed`)
// Explicit exit: after an interruption a step may still be waiting for a response.
process.exit(failed === 0 ? 0 : 1)

async function runSteps() {
  for (const step of steps) {
    const isPassed = await report(step.title, () => step.run(cluster))
    if (isStopped || (step.isNeeded && !isPassed)) return
  }
  if (failed > 0) console.log(await cluster.logs().catch((error) => error.message))
}

function interrupt(reason) {
  isStopped = true
  console.log(`interrupted: ${reason}`)
  failed += 1
  cluster.interrupt()
}

async function report(title, run) {
  const startedAt = Date.now()
  const seconds = () => `(${((Date.now() - startedAt) / 1_000).toFixed(1)} s)`
  try {
    const detail = await run()
    console.log(`✓ ${title}${detail ? `: ${detail}` : ''} ${seconds()}`)
    passed += 1
    return true
  } catch (error) {
    console.log(`✗ ${title} ${seconds()}\n  ${error.message}`)
    failed += 1
    return false
  }
}
