import type { EmbeddedPostgres } from '@rouse/database'
import { memoryFolder } from './memory-folder.ts'
import type { PostgresSource } from './postgres-source.ts'
import { startTestPostgres } from './test-postgres.ts'

/** Tests discard their data, so nothing needs to reach the disk. */
export const testServerSettings = { fsync: 'off', full_page_writes: 'off' } as const

export function embeddedSource(): PostgresSource {
  let running: Promise<EmbeddedPostgres> | undefined
  return {
    kind: 'embedded',
    async start() {
      running ??= startDiscardedPostgres()
      const server = await running
      // The server does not keep the test process running. When that process ends, the watchdog stops the
      // server.
      server.unref()
      return server.url
    },
    async stop() {
      await (await running)?.stop()
    },
  }
}

/** A server for one run of tests, with its data in memory where the system allows it. */
export async function startDiscardedPostgres(major?: number): Promise<EmbeddedPostgres> {
  return startTestPostgres({
    ...(major !== undefined && { major }),
    settings: testServerSettings,
    temporaryIn: await memoryFolder(),
  })
}
