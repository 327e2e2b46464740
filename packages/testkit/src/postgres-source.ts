// Where tests get their PostgreSQL from. All sources pass the same suite:
//
//   given      ROUSE_TEST_DATABASE_URL, which a run of many test files sets once for all files
//   container  ROUSE_TEST_POSTGRES=container: the official image, through testcontainers
//   given      DATABASE_URL
//   embedded   otherwise: a server for this process alone
import { containerSource } from './container-source.ts'
import { embeddedSource } from './embedded-source.ts'
import { givenSource } from './given-source.ts'

export interface PostgresSource {
  readonly kind: 'embedded' | 'given' | 'container'
  /** Resolves with the URL of a database whose user can create databases. */
  start(): Promise<string>
  /** Safe to call twice, and before start. */
  stop(): Promise<void>
}

export function choosePostgresSource(environment: NodeJS.ProcessEnv = process.env): PostgresSource {
  if (environment.ROUSE_TEST_DATABASE_URL) return givenSource(environment.ROUSE_TEST_DATABASE_URL)
  if (environment.ROUSE_TEST_POSTGRES === 'container') return containerSource()
  if (environment.DATABASE_URL) return givenSource(environment.DATABASE_URL)
  return embeddedSource()
}

let shared: Promise<string> | undefined

/** The server of this test process. The first test that needs the server starts it. */
export function sharedPostgresUrl(): Promise<string> {
  shared ??= startShared()
  return shared
}

function startShared(): Promise<string> {
  const source = choosePostgresSource()
  process.once('beforeExit', () => void source.stop())
  return source.start()
}
