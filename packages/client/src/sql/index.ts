export type { SqlExecutor } from './executor.ts'
export type {
  DrizzleTransaction,
  KnexTransaction,
  KyselyTransaction,
  PgClient,
  PostgresTransaction,
  PrismaTransaction,
} from './executors.ts'
export { fromDrizzle, fromKnex, fromKysely, fromPg, fromPostgres, fromPrisma } from './executors.ts'
export type { Acknowledgeable, EnqueueEntry, PushedIn } from './push-in.ts'
export { ackIn, enqueueMany, pushIn } from './push-in.ts'
