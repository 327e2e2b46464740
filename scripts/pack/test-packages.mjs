// `npm run test:packages`: packs `rouse` and `@rouse/client`, installs the tarballs into an empty folder
// outside the workspace, and uses them there as a user would. Needs the npm registry, for the dependencies.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setup } from '../setup.mjs'
import { untilStopped } from '../until-stopped.mjs'
import { Consumer } from './consumer.mjs'
import { packAll } from './pack-all.mjs'
import { steps } from './steps.mjs'

const stopped = untilStopped()
await setup()
const folder = mkdtempSync(join(tmpdir(), 'rouse-packages-'))
const consumer = new Consumer(folder, await packAll(join(folder, 'tarballs')))
let passed = 0
let failed = 0

const interrupted = await Promise.race([runSteps(), stopped])
await consumer.stop()
rmSync(folder, { recursive: true })
if (interrupted !== undefined) {
  console.log(`interrupted: ${interrupted}`)
  failed += 1
}
console.log(`${passed} passed, ${failed} failed`)
// Explicit exit: after an interruption a step may still be waiting.
process.exit(failed === 0 ? 0 : 1)

async function runSteps() {
  for (const step of steps) {
    const startedAt = performance.now()
    const seconds = () => `(${((performance.now() - startedAt) / 1_000).toFixed(1)} s)`
    try {
      const detail = await step.run(consumer)
      console.log(`✓ ${step.title}${detail ? `: ${detail}` : ''} ${seconds()}`)
      passed += 1
    } catch (error) {
      console.log(`✗ ${step.title} ${seconds()}\n  ${error.message}`)
      failed += 1
      if (step.isNeeded) return
    }
  }
}
