export { freePort } from '@rouse/database'
export type { Barrier } from './barrier.ts'
export { builtNode } from './built-node.ts'
export { containerSource } from './container-source.ts'
export type { TestDatabase, TestDatabaseOptions } from './database.ts'
export { testDatabase } from './database.ts'
export { copyByDump, dumpMajor, dumpMissing } from './dump.ts'
export { embeddedSource, startDiscardedPostgres, testServerSettings } from './embedded-source.ts'
export type { EventuallyOptions } from './eventually.ts'
export { eventually } from './eventually.ts'
export { givenSource } from './given-source.ts'
export type { Pgbouncer, PgbouncerOptions } from './pgbouncer.ts'
export { pgbouncerMissing, startPgbouncer } from './pgbouncer.ts'
export type { PostgresPair, PostgresPairOptions } from './postgres-pair.ts'
export { startPostgresPair } from './postgres-pair.ts'
export type { PostgresServer, PostgresServerOptions } from './postgres-server.ts'
export { createPostgresServer } from './postgres-server.ts'
export type { PostgresSource } from './postgres-source.ts'
export { choosePostgresSource, sharedPostgresUrl } from './postgres-source.ts'
export { postgresSourceSuite } from './postgres-source-suite.ts'
export type { UdpLoss } from './private-network.ts'
export {
  dropUdp,
  healUdp,
  privateNetworkMissing,
  raiseLoopback,
  runInPrivateNetwork,
} from './private-network.ts'
export { programMissing, programPath } from './programs.ts'
export type { Random } from './random.ts'
export { seededRandom } from './random.ts'
export type { TemplateContent } from './template-database.ts'
export type { TestPostgresOptions } from './test-postgres.ts'
export {
  majorUnderTest,
  postgresMajors,
  postgresMissing,
  startTestPostgres,
} from './test-postgres.ts'
