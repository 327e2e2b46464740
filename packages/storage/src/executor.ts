export interface Statement {
  /** Prepared under this name, once per connection. Absent behind a pooler that cannot. */
  readonly name?: string
  readonly text: string
  readonly values: readonly unknown[]
  readonly rowMode: 'array'
}

/** What a statement needs of a pg Pool or Client. */
export interface Executor {
  query(statement: Statement): Promise<{ rows: unknown[][] }>
}

/** Gives each statement a connection of its own, and to those who ask for one, one to work with. */
export interface Connections extends Executor {
  /** Rejects without having called `work` where there is no connection to be had. */
  use<T>(work: (executor: Executor) => Promise<T>): Promise<T>
}

/** Counts statements by name. */
export function countingQueries(
  connections: Connections,
  counts: Record<string, number>,
): Connections {
  const counting = (executor: Executor): Executor => ({
    query: (statement) => {
      const name = statement.name ?? 'unnamed'
      counts[name] = (counts[name] ?? 0) + 1
      return executor.query(statement)
    },
  })
  return {
    ...counting(connections),
    use: (work) => connections.use((executor) => work(counting(executor))),
  }
}

/** For statements that are too rare to be kept prepared on every connection. */
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

/** One call of a set-returning function of schema rouse. Each row comes back as an array of columns. */
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

/** Calls are constants: each one's text is put together once. */
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
