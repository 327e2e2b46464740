// How statements reach PostgreSQL. A statement is prepared by name, once per connection. A pooler in
// transaction mode (pgbouncer before 1.21) may give every transaction another server connection. On such a
// connection the name is missing or already taken, and the statement fails before it begins. So a connection
// through a pooler uses no names, and neither does a connection on which a statement has failed this way.
import { isPooled, OutcomeUnknownError } from '@rouse/database'
import type pg from 'pg'

export interface Statement {
  /**
   * Prepared under this name, once per connection. Absent behind a pooler that does not support prepared
   * statements.
   */
  readonly name?: string
  readonly text: string
  readonly values: readonly unknown[]
  readonly rowMode: 'array'
}

/** The part of a pg Pool or Client that statements need. */
export interface Executor {
  query(statement: Statement): Promise<{ rows: unknown[][] }>
}

/** Uses any connection for each statement; `use` keeps one connection for several statements. */
export interface Connections extends Executor {
  /** Rejects without calling `work` if no connection is available. */
  use<T>(work: (executor: Executor) => Promise<T>): Promise<T>
}

export interface CallTimer {
  /** Monotonic milliseconds. */
  readonly nowMs: () => number
  /** A statement has ended, also if it failed. */
  readonly onCalled: (statement: string, ms: number) => void
}

/** Counts and times statements by name. */
export function countingQueries(
  connections: Connections,
  counts: Record<string, number>,
  timer?: CallTimer,
): Connections {
  const counting = (executor: Executor): Executor => ({
    query: (statement) => {
      const name = statement.name ?? 'unnamed'
      counts[name] = (counts[name] ?? 0) + 1
      const answer = executor.query(statement)
      return timer === undefined ? answer : timed(answer, name, timer)
    },
  })
  return {
    ...counting(connections),
    use: (work) => connections.use((executor) => work(counting(executor))),
  }
}

async function timed<T>(answer: Promise<T>, name: string, timer: CallTimer): Promise<T> {
  const startedAtMs = timer.nowMs()
  try {
    return await answer
  } finally {
    timer.onCalled(name, timer.nowMs() - startedAtMs)
  }
}

/** For statements too rare to keep prepared on every connection. */
export function withoutPreparing(executor: Executor): Executor {
  return { query: (statement) => executor.query(unnamed(statement)) }
}

export function unnamed({ text, values, rowMode }: Statement): Statement {
  return { text, values, rowMode }
}

interface Call {
  readonly name: string
  readonly columns: string
  readonly parameters: readonly string[]
}

/** Calls a set-returning function of schema rouse. Returns rows as arrays of columns. */
export async function callRows(
  executor: Executor,
  call: Call,
  values: readonly unknown[],
): Promise<unknown[][]> {
  const { rows } = await executor.query({
    name: `rouse.${call.name}`,
    text: textOf(call),
    values,
    rowMode: 'array',
  })
  return rows
}

/** Calls are constants: the text of each is built once. */
const texts = new WeakMap<Call, string>()

function textOf(call: Call): string {
  let text = texts.get(call)
  if (text === undefined) {
    const places = call.parameters.map((type, i) => `$${i + 1}::${type}`).join(', ')
    text = `select ${call.columns} from rouse.${call.name}(${places})`
    texts.set(call, text)
  }
  return text
}

/** Whether statements are prepared by name. `auto`: unless the connection goes through a pooler. */
export type Preparing = 'auto' | 'on' | 'off'

export function poolExecutor(pool: pg.Pool, preparing: Preparing = 'auto'): Connections {
  const prepares = new WeakMap<pg.PoolClient, boolean>()

  async function mayPrepare(client: pg.PoolClient): Promise<boolean> {
    const known = prepares.get(client)
    if (known !== undefined) return known
    const answer = preparing === 'auto' ? !(await isPooled(client)) : preparing === 'on'
    prepares.set(client, answer)
    return answer
  }

  async function run(client: pg.PoolClient, statement: Statement): Promise<unknown[][]> {
    const named = statement.name !== undefined && (await mayPrepare(client))
    try {
      return await ask(client, named ? statement : unnamed(statement))
    } catch (error) {
      if (!named || !isPreparedElsewhere(error)) throw error
      prepares.set(client, false)
      return ask(client, unnamed(statement))
    }
  }

  async function use<T>(work: (executor: Executor) => Promise<T>): Promise<T> {
    const client = await pool.connect()
    let isLost = false
    try {
      return await work({
        async query(statement) {
          try {
            return { rows: await run(client, statement) }
          } catch (error) {
            isLost ||= isConnectionLost(error)
            throw error
          }
        },
      })
    } finally {
      client.release(isLost)
    }
  }

  return { use, query: (statement) => use((executor) => executor.query(statement)) }
}

async function ask(client: pg.PoolClient, statement: Statement): Promise<unknown[][]> {
  const { rows } = await client.query({ ...statement, values: [...statement.values] })
  return rows as unknown[][]
}

const preparedElsewhere = new Set([
  '26000', // invalid_sql_statement_name: prepared on another server connection
  '42P05', // duplicate_prepared_statement: another client prepared it on this one
])

/** Both codes mean that the statement did not begin. */
function isPreparedElsewhere(error: unknown): boolean {
  return error instanceof Error && 'code' in error && preparedElsewhere.has(String(error.code))
}

/** A client that lost its connection must not return to the pool; a client whose statement failed may. */
function isConnectionLost(error: unknown): boolean {
  if (error instanceof OutcomeUnknownError) return false
  if (!(error instanceof Error && 'severity' in error)) return true
  return error.severity === 'FATAL' || error.severity === 'PANIC'
}
