import type { StartedPostgreSqlContainer } from '@testcontainers/postgresql'
import type { PostgresSource } from './postgres-source.ts'

const image = 'postgres:18'

type StartContainer = () => Promise<StartedPostgreSqlContainer>

export function containerSource(startContainer: StartContainer = startImage): PostgresSource {
  let running: Promise<StartedPostgreSqlContainer> | undefined
  return {
    kind: 'container',
    async start() {
      running ??= startContainer()
      try {
        return (await running).getConnectionUri()
      } catch (error) {
        const reason = error instanceof Error ? error.message.split('\n')[0] : String(error)
        throw new Error(`no container engine could start ${image}: ${reason}`, { cause: error })
      }
    },
    async stop() {
      const container = await running?.catch(() => undefined)
      await container?.stop()
    },
  }
}

async function startImage(): Promise<StartedPostgreSqlContainer> {
  // Imported here because the package loads slowly and only this source needs it.
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql')
  const user = 'test'
  return new PostgreSqlContainer(image)
    .withUsername(user)
    .withCommand(['postgres', '-c', 'fsync=off', '-c', 'max_connections=200'])
    .withHealthCheck({
      // The default one runs in a shell for at most a second. On a busy machine the engine kills that shell,
      // and PostgreSQL, as process 1, inherits pg_isready. When that ends by a signal, the server takes it for
      // a crash of one of its own processes, and drops all connections.
      test: ['CMD', 'pg_isready', '--quiet', '--host=127.0.0.1', `--username=${user}`],
      interval: 500,
      timeout: 60_000,
      retries: 1_000,
    })
    .start()
}
