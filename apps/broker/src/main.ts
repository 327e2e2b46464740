#!/usr/bin/env node
// One node of Rouse. The primary runs this file, and so does every worker it forks.
import cluster from 'node:cluster'
import { type ConfigRequest, describeConfig, loadConfig } from './config/config.ts'
import { ConfigError } from './config/config-error.ts'

const request = loadOrExit()
if (request.hasSecretFlag) process.title = 'rouse-broker'
if (request.checkOnly) process.stdout.write(`${describeConfig(request.config)}\n`)
else if (cluster.isPrimary) {
  // Each process loads only what it needs: the primary does not load Fastify.
  const { runPrimary } = await import('./primary/primary.ts')
  process.exit(await runPrimary(request.config, () => loadConfig().config))
} else {
  const { runWorker } = await import('./worker/worker.ts')
  await runWorker(request.config)
}

function loadOrExit(): ConfigRequest {
  try {
    return loadConfig()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`rouse-broker: ${error.message}\n`)
    process.exit(1)
  }
}
