import type pg from 'pg'
import { callStatement } from '../call.ts'
import { callRows, type Executor } from '../executor.ts'

export interface QueueStats {
  readonly queue: string
  readonly namespace: string | null
  readonly task: string | null
  readonly paused: boolean
  readonly partitions: number
  readonly messages: number
  readonly scheduled: number
  readonly groups: readonly ConsumerGroupStats[]
}

export interface ConsumerGroupStats {
  readonly group: string
  readonly pending: number
  readonly inFlight: number
  readonly redeliveries: number
  readonly blockedLanes: number
  readonly leasedLanes: number
  readonly dead: number
  readonly oldestPendingAt: Date | null
  readonly lastSeenAt: Date
}

// Times are read as milliseconds: a list has thousands of rows, and timestamps are slow to format and to
// parse.
const columns =
  'queue, namespace, task, paused, partitions, messages, scheduled, consumer_group, pending, ' +
  'in_flight, redeliveries, blocked_lanes, leased_lanes, dead, ' +
  "floor(date_part('epoch', oldest_pending_at) * 1000)::bigint, " +
  "floor(date_part('epoch', last_seen_at) * 1000)::bigint"

const statsCall = { name: 'stats', columns, parameters: ['text'] }

/** Counts for each queue and its consumer groups; one queue or all. */
export async function stats(executor: Executor, queue?: string): Promise<QueueStats[]> {
  return readQueues(await callRows(executor, statsCall, [queue ?? null]))
}

const pageCall = { name: 'stats_page', columns, parameters: ['text', 'integer'] }

/** The same for one page of queues, by name. */
export async function statsPage(
  executor: Executor,
  page: { readonly after: string | undefined; readonly limit: number },
): Promise<QueueStats[]> {
  return readQueues(await callRows(executor, pageCall, [page.after ?? null, page.limit]))
}

/** The same for these queues; names that do not exist are left out. */
export async function statsOfNamed(pool: pg.Pool, names: readonly string[]): Promise<QueueStats[]> {
  const rows = await callStatement(
    pool,
    `select ${columns} from rouse.stats_of(array(select q.id from rouse.queues q where q.name = any ($1)))`,
    [names],
  )
  return readQueues(rows)
}

export interface QueueFilter {
  /** The page starts after this name. */
  readonly after?: string | undefined
  readonly offset?: number | undefined
  readonly limit: number
  /** A part of the name. */
  readonly search?: string | undefined
  readonly namespace?: string | undefined
  readonly task?: string | undefined
  /** Only queues with these names or prefixes. */
  readonly visible?:
    | { readonly names: readonly string[]; readonly prefixes: readonly string[] }
    | undefined
}

/** The same for a page of the queues that match a filter, by name. */
export async function statsOfMatching(pool: pg.Pool, filter: QueueFilter): Promise<QueueStats[]> {
  const found = findQueues(filter)
  const rows = await callStatement(
    pool,
    `select ${columns} from rouse.stats_of(${found.call})`,
    found.values,
  )
  return readQueues(rows)
}

/** The call that finds the queues of a filter, and its parameters. */
export function findQueues(filter: QueueFilter): { call: string; values: readonly unknown[] } {
  const { after, offset = 0, limit, search, namespace, task, visible } = filter
  const values = [after, offset, limit, search, namespace, task]
  if (visible === undefined) return { call: 'rouse.find_queues($1, $2, $3, $4, $5, $6)', values }
  return {
    call: 'rouse.find_visible_queues($1, $2, $3, $4, $5, $6, $7, $8)',
    values: [...values, visible.names, visible.prefixes],
  }
}

function readQueues(rows: readonly unknown[][]): QueueStats[] {
  const queues = new Map<string, QueueStats & { groups: ConsumerGroupStats[] }>()
  for (const row of rows) {
    const name = row[0] as string
    const known = queues.get(name) ?? readQueue(row)
    queues.set(name, known)
    if (row[7] !== null) known.groups.push(readGroup(row))
  }
  return [...queues.values()]
}

function readQueue(row: readonly unknown[]): QueueStats & { groups: ConsumerGroupStats[] } {
  return {
    queue: row[0] as string,
    namespace: row[1] as string | null,
    task: row[2] as string | null,
    paused: row[3] as boolean,
    partitions: Number(row[4]),
    messages: Number(row[5]),
    scheduled: Number(row[6]),
    groups: [],
  }
}

function readGroup(row: readonly unknown[]): ConsumerGroupStats {
  return {
    group: row[7] as string,
    pending: Number(row[8]),
    inFlight: Number(row[9]),
    redeliveries: Number(row[10]),
    blockedLanes: Number(row[11]),
    leasedLanes: Number(row[12]),
    dead: Number(row[13]),
    oldestPendingAt: row[14] === null ? null : new Date(Number(row[14])),
    lastSeenAt: new Date(Number(row[15])),
  }
}
