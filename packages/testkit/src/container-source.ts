import type { StartedPostgreSqlContainer } from '@testcontainers/postgresql'
import type { PostgresSource } from './postgres-source.ts'

const image = 'postgres:18'

export function containerSource(): PostgresSource {
  let running: Promise<StartedPostgreSqlContainer> | undefined
  return {
    kind: 'container',
    async start() {
      running ??= startContainer()
      return (await running).getConnectionUri()
    },
    async stop() {
      await (await running)?.stop()
    },
  }
}

async function startContainer(): Promise<StartedPostgreSqlContainer> {
  // Imported here because it is slow to load and only this source wants it.
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql')
  try {
    return await new PostgreSqlContainer(image)
      .withCommand(['postgres', '-c', 'fsync=off', '-c', 'max_connections=200'])
      .start()
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error)
    throw new Error(`no container engine could start ${image}: ${reason}`, { cause: error })
  }
}
