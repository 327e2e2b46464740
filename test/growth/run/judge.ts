// Defines growth: compares the results of the start and the end of a run, and returns the reasons for a
// verdict of growth. Pure functions.

/** The name under which `memoryMb` lists all processes of PostgreSQL together. */
export const postgres = 'PostgreSQL'

export interface WindowFigures {
  readonly messagesPerSecond: number
  /** CPU time of all nodes, and of PostgreSQL, per pushed message, including all its deliveries. */
  readonly nodeUs: number
  readonly postgresUs: number
  readonly pushP50Ms: number
  readonly pushP99Ms: number
  /** The time from the push to the consumer, for first attempts of messages without delay. */
  readonly deliveryP50Ms: number
  readonly deliveryP99Ms: number
}

export interface TableFigures {
  readonly tableMb: number
  readonly indexMb: number
  readonly live: number
  readonly dead: number
}

export interface Figures extends WindowFigures {
  /** By process. PostgreSQL counts as one process. */
  readonly memoryMb: Readonly<Record<string, number>>
  readonly tables: Readonly<Record<string, TableFigures>>
  /** How many seconds overdue the oldest row of each kind is. */
  readonly lagSeconds: Readonly<Record<string, number>>
  /** The number of pushed messages that some group has not completed. */
  readonly pending: number
}

export interface Run {
  readonly minutes: number
  readonly rate: number
  readonly nodes: number
  readonly failedRequests: number
  readonly start: Figures
  readonly end: Figures
}

export const limits = {
  /** The most CPU per message at the end, as a multiple of the start. */
  cpuFactor: 1.2,
  latencyFactor: 1.5,
  /** A difference below this is scheduling noise. */
  latencySlackMs: 5,
  memoryFactor: 1.3,
  memorySlackMb: 20,
  sizeFactor: 1.5,
  sizeSlackMb: 16,
  /** A table may have the dead rows of two minutes, four per message: autovacuum runs once a minute. */
  deadSeconds: 120,
  deadPerMessage: 4,
  lagSeconds: 60,
  /** The most uncompleted messages, as the number of seconds in which this many are pushed. */
  pendingSeconds: 10,
  rateFactor: 0.95,
} as const

/** Returns the reasons why this run shows growth. */
export function judge({ rate, failedRequests, start, end }: Run): string[] {
  const reasons: string[] = []
  const limit = (what: string, value: number, max: number, unit: string): void => {
    if (!(value <= max)) reasons.push(`${what}: ${round(value)} ${unit}, at most ${round(max)}`)
  }
  if (!(end.messagesPerSecond >= rate * limits.rateFactor)) {
    reasons.push(
      `only ${round(end.messagesPerSecond)} of ${rate} messages a second went through at the end`,
    )
  }
  if (failedRequests > 0) reasons.push(`${failedRequests} requests failed`)
  limit('CPU of nodes per message', end.nodeUs, start.nodeUs * limits.cpuFactor, 'µs')
  limit('CPU of PostgreSQL per message', end.postgresUs, start.postgresUs * limits.cpuFactor, 'µs')
  const slower = (ms: number): number => ms * limits.latencyFactor + limits.latencySlackMs
  limit('median of a push', end.pushP50Ms, slower(start.pushP50Ms), 'ms')
  limit('median of a delivery', end.deliveryP50Ms, slower(start.deliveryP50Ms), 'ms')
  for (const [name, mb] of Object.entries(end.memoryMb)) {
    const before = start.memoryMb[name] ?? Number.NaN
    limit(`memory of ${name}`, mb, before * limits.memoryFactor + limits.memorySlackMb, 'MB')
  }
  limit(
    'all tables and indexes',
    sizeMb(end),
    sizeMb(start) * limits.sizeFactor + limits.sizeSlackMb,
    'MB',
  )
  for (const [name, { dead }] of Object.entries(end.tables)) {
    limit(`dead rows of ${name}`, dead, rate * limits.deadSeconds * limits.deadPerMessage, 'rows')
  }
  for (const [kind, seconds] of Object.entries(end.lagSeconds)) {
    limit(`retention of ${kind} is behind`, seconds, limits.lagSeconds, 's')
  }
  limit('messages not completed', end.pending, rate * limits.pendingSeconds, 'messages')
  return reasons
}

/** Summarizes the run in one sentence. */
export function sentence(run: Run): string {
  const { minutes, rate, nodes, start, end } = run
  const from = (key: keyof WindowFigures, digits = 0): string =>
    `${start[key].toFixed(digits)} to ${end[key].toFixed(digits)}`
  const memory = (pick: (figures: Figures) => number): string =>
    `${pick(start).toFixed(0)} to ${pick(end).toFixed(0)} MB`
  const dead = Object.values(end.tables).reduce((sum, table) => sum + table.dead, 0)
  const lag = Math.max(...Object.values(end.lagSeconds))
  const verdict = judge(run).length === 0 ? 'no growth' : 'growth'
  return (
    `${minutes} minutes at ${rate} messages a second on ${nodes} nodes: ${verdict}; CPU per message ${from('nodeUs')} µs of nodes and ` +
    `${from('postgresUs')} µs of PostgreSQL, largest process of a node ${memory(largestNode)}, PostgreSQL ${memory(({ memoryMb }) => memoryMb[postgres] ?? Number.NaN)}, tables and indexes ` +
    `${sizeMb(start).toFixed(0)} to ${sizeMb(end).toFixed(0)} MB, ${dead.toLocaleString('en')} dead rows, retention ${lag.toFixed(0)} s behind, ` +
    `push p50 ${from('pushP50Ms', 1)} ms (p99 ${from('pushP99Ms', 1)}), delivery p50 ${from('deliveryP50Ms', 1)} ms (p99 ${from('deliveryP99Ms', 1)})`
  )
}

function largestNode({ memoryMb }: Figures): number {
  const nodes = Object.entries(memoryMb).filter(([name]) => name !== postgres)
  return Math.max(...nodes.map(([, mb]) => mb))
}

export function sizeMb({ tables }: Figures): number {
  return Object.values(tables).reduce((sum, { tableMb, indexMb }) => sum + tableMb + indexMb, 0)
}

function round(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(1)
}
