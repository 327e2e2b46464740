import type pg from 'pg'
import { callStatement } from '../call.ts'

export interface TraceRow {
  readonly id: string | null
  readonly queue: string
  readonly partition: string | null
  readonly partitionId: string
  readonly transactionId: string
  readonly consumerGroup: string | null
  readonly traceNames: readonly string[]
  readonly eventType: string
  /** JSON text. */
  readonly data: string
  readonly createdAt: Date
}

export type NewTrace = Omit<TraceRow, 'id' | 'queue' | 'partition' | 'createdAt'>

/** Resolves to the event's id; undefined if there is no such partition. */
export async function addTrace(pool: pg.Pool, trace: NewTrace): Promise<string | undefined> {
  const { partitionId, transactionId, consumerGroup, traceNames, eventType, data } = trace
  const [row] = await callStatement(pool, 'select rouse.add_trace($1, $2, $3, $4, $5, $6)', [
    partitionId,
    transactionId,
    consumerGroup,
    traceNames,
    eventType,
    data,
  ])
  return (row?.[0] as string | null) ?? undefined
}

/** The functions are part of the statement's plan, so the statement's own limit applies to them. */
const everything = 2_147_483_647

const columns =
  'id, queue, partition, partition_id, transaction_id, consumer_group, names, event_type, data, created_at'

/** Newest first. */
export async function tracesOfMessage(
  pool: pg.Pool,
  partitionId: string,
  transactionId: string,
  limit: number,
): Promise<TraceRow[]> {
  const sql = `select ${columns} from rouse.list_traces($1, $2, null, null, $3)`
  return (await callStatement(pool, sql, [partitionId, transactionId, limit])).map(readTrace)
}

export interface TraceFilter {
  readonly name: string
  /** The event to continue before. */
  readonly before: string | undefined
  readonly from: Date | undefined
  readonly to: Date | undefined
  readonly offset: number
  readonly limit: number
}

/** Newest first. */
export async function tracesByName(pool: pg.Pool, filter: TraceFilter): Promise<TraceRow[]> {
  const { name, before, from, to, offset, limit } = filter
  const sql = `select ${columns} from rouse.list_traces(null, null, $1, $2, ${everything})
    where ($3::timestamptz is null or created_at >= $3) and ($4::timestamptz is null or created_at <= $4)
    order by id desc offset $5 limit $6`
  return (await callStatement(pool, sql, [name, before, from, to, offset, limit])).map(readTrace)
}

export interface AttemptTrace {
  readonly consumerGroup: string
  readonly eventType: string
  readonly data: string
  readonly createdAt: Date
}

export async function attemptTraces(
  pool: pg.Pool,
  partitionId: string,
  transactionId: string,
): Promise<AttemptTrace[]> {
  const rows = await callStatement(
    pool,
    'select consumer_group, event_type, data, created_at from rouse.attempt_traces($1, $2)',
    [partitionId, transactionId],
  )
  return rows.map(([group, eventType, data, createdAt]) => ({
    consumerGroup: group as string,
    eventType: eventType as string,
    data: data as string,
    createdAt: createdAt as Date,
  }))
}

/** As stored, so the name may be reserved. Undefined if there is no such partition. */
export async function partitionNames(
  pool: pg.Pool,
  partitionId: string,
): Promise<{ readonly queue: string; readonly partition: string } | undefined> {
  const [row] = await callStatement(
    pool,
    `select q.name, p.name from rouse.partitions p join rouse.queues q on q.id = p.queue_id where p.id = $1`,
    [partitionId],
  )
  return row === undefined ? undefined : { queue: row[0] as string, partition: row[1] as string }
}

export async function traceNames(
  pool: pg.Pool,
  page: { readonly limit: number; readonly offset: number; readonly search?: string | undefined },
): Promise<{ readonly name: string; readonly events: number; readonly lastAt: Date }[]> {
  const sql = `select name, events::float8, last_at from rouse.trace_names(${everything})
    where $1::text is null or strpos(name, $1) > 0
    order by last_at desc, name offset $2 limit $3`
  return (await callStatement(pool, sql, [page.search, page.offset, page.limit])).map(
    ([name, events, lastAt]) => ({
      name: name as string,
      events: events as number,
      lastAt: lastAt as Date,
    }),
  )
}

function readTrace(row: readonly unknown[]): TraceRow {
  return {
    id: row[0] as string,
    queue: row[1] as string,
    partition: row[2] as string | null,
    partitionId: row[3] as string,
    transactionId: row[4] as string,
    consumerGroup: row[5] as string | null,
    traceNames: row[6] as string[],
    eventType: row[7] as string,
    data: row[8] as string,
    createdAt: row[9] as Date,
  }
}
