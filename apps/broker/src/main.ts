#!/usr/bin/env node
// One node of Rouse. The primary runs this file, and so does every worker it forks.
import cluster from 'node:cluster'
import { type ConfigRequest, describeConfig, loadConfig } from './config.ts'
import { ConfigError } from './config-error.ts'
import { runPrimary } from './primary.ts'
import { runWorker } from './worker.ts'

const request = loadOrExit()
if (request.checkOnly) process.stdout.write(`${describeConfig(request.config)}\n`)
else if (cluster.isPrimary) {
  process.exit(await runPrimary(request.config, () => loadConfig().config))
} else await runWorker(request.config)

function loadOrExit(): ConfigRequest {
  try {
    return loadConfig()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`rouse-broker: ${error.message}\n`)
    process.exit(1)
  }
}
