import { setTimeout as delay } from 'node:timers/promises'
import { classifyPostgresError, migrate } from '@rouse/database'
import type pg from 'pg'
import type { Config } from './config.ts'
import type { Logger } from './log.ts'
import { writeServerDefaults } from './statements/server-defaults.ts'

const retryMs = 1_000

/** Waits for a database that is not there yet, brings it to our version, and sets the defaults of queues. */
export async function prepareDatabase(options: {
  readonly pool: pg.Pool
  readonly config: Config
  readonly log: Logger
  readonly stopped: Promise<unknown>
}): Promise<void> {
  const { pool, config, log } = options
  let isStopped = false
  void options.stopped.then(() => {
    isStopped = true
  })
  for (;;) {
    try {
      await bringToVersion(pool, config, log)
      await writeServerDefaults(pool, config.queueDefaults)
      return
    } catch (error) {
      if (isStopped) return
      if (classifyPostgresError(error) !== 'unavailable') throw error
      log.warn({ reason: (error as Error).message }, 'PostgreSQL is not there yet')
      await delay(retryMs)
    }
  }
}

async function bringToVersion(pool: pg.Pool, config: Config, log: Logger): Promise<void> {
  if (config.migrate === 'off') return
  const dryRun = config.migrate === 'check'
  const { applied, functions } = await migrate({ pool, dryRun, log: (line) => log.info(line) })
  if (dryRun && applied.length + functions.length > 0) {
    throw new Error(
      `the database is not at this version: ${applied.length} migrations and ${functions.length} function files are to be applied`,
    )
  }
}
