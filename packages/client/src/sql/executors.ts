// Executors for the libraries that people use with PostgreSQL. Each takes the library's own transaction (or
// connection) and imports nothing from the library. In the statements of this package every parameter occurs
// once, the parameters are numbered in the order of the text, and all values are strings: libraries differ in
// how they send other types.
import type { SqlExecutor } from './executor.ts'
import { unwrapped } from './library-error.ts'

/** A client of `pg`: `pool.connect()` or `new Client()`. A pool would run outside of your transaction. */
export interface PgClient {
  query(text: string, values: unknown[]): PromiseLike<unknown>
}

/** Runs the statements in the transaction of a client of `pg`. */
export function fromPg(client: PgClient): SqlExecutor {
  return { query: (text, values) => unwrapped(client.query(text, values)) }
}

/** A `Transaction` of Kysely 0.28. */
export interface KyselyTransaction {
  // biome-ignore lint/suspicious/noExplicitAny: the type of a compiled query is Kysely's own
  executeQuery(query: any): Promise<{ readonly rows: unknown[] }>
}

/** Runs the statements in a transaction of Kysely. */
export function fromKysely(transaction: KyselyTransaction): SqlExecutor {
  return {
    query: (sql, parameters) =>
      unwrapped(
        transaction.executeQuery({
          sql,
          parameters,
          query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
          queryId: { queryId: 'rouse' },
        }),
      ),
  }
}

/** A transaction of Drizzle for PostgreSQL, with any of its drivers. */
export interface DrizzleTransaction {
  // biome-ignore lint/suspicious/noExplicitAny: the type of a query is Drizzle's own
  execute(query: any): PromiseLike<unknown>
}

/** Runs the statements in a transaction of Drizzle. */
export function fromDrizzle(transaction: DrizzleTransaction): SqlExecutor {
  return {
    query(sql, params) {
      // Drizzle takes any object that it can ask for a query and its parameters.
      const query = { getSQL: () => query, toQuery: () => ({ sql, params }) }
      return unwrapped(transaction.execute(query))
    },
  }
}

/** A transaction of Knex. */
export interface KnexTransaction {
  // biome-ignore lint/suspicious/noExplicitAny: the types of bindings are Knex's own
  raw(sql: string, bindings: any): PromiseLike<unknown>
}

/** Runs the statements in a transaction of Knex. */
export function fromKnex(transaction: KnexTransaction): SqlExecutor {
  return {
    query: (text, values) => unwrapped(transaction.raw(text.replaceAll(/\$\d+/g, '?'), values)),
  }
}

/** The transaction that `prisma.$transaction(async (tx) => …)` passes, of Prisma 7. */
export interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: unknown[]): PromiseLike<unknown>
}

/** Runs the statements in a transaction of Prisma. */
export function fromPrisma(transaction: PrismaTransaction): SqlExecutor {
  return { query: (text, values) => unwrapped(transaction.$queryRawUnsafe(text, ...values)) }
}

/** The transaction that `sql.begin(async (sql) => …)` of the package `postgres` passes. */
export interface PostgresTransaction {
  // biome-ignore lint/suspicious/noExplicitAny: the types of parameters are the library's own
  unsafe(query: string, parameters: any[]): PromiseLike<unknown>
}

/** Runs the statements in a transaction of the package `postgres`. */
export function fromPostgres(transaction: PostgresTransaction): SqlExecutor {
  return { query: (text, values) => unwrapped(transaction.unsafe(text, values)) }
}
