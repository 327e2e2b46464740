import { messageIdAt, type PopSource, pushedAtOf } from '@rouse/protocol'
import { boolArray, int4Array, int8Array, textArray } from '../binary-array.ts'
import { callRows, type Executor } from '../executor.ts'

export interface PopDemand {
  readonly batch: number
  /** The maximum number of partitions to draw from. */
  readonly partitions: number
  /** Absent: the queue's lease time. */
  readonly leaseMs?: number | undefined
  readonly autoAck?: boolean | undefined
  /** Each message gets its own lease. At most one message of an ordered partition. */
  readonly leasePerMessage?: boolean | undefined
  /** Who holds the lease (node, worker, consumer), to be shown to operators. */
  readonly holder: string
}

export interface PopRequest {
  readonly source: PopSource
  readonly group: string
  /** Oldest waiter first. */
  readonly demands: readonly PopDemand[]
  /** Where a new consumer group begins. */
  readonly subscription?: 'all' | 'new' | { readonly fromMs: number } | undefined
  /** The partition after which the search starts; callers rotate it for fairness. */
  readonly after?: string | undefined
  /** Whether the lease survives a crash of the database. */
  readonly durable?: boolean | undefined
  /** The maximum bytes of payload and headers per demand; the first message is always included. */
  readonly bytesMax?: number | undefined
}

export const popBytesMaxDefault = 16_777_216

export interface Lease {
  /** The position of the demand that this lease answers. */
  readonly demand: number
  readonly leaseId: string
  readonly queue: string
  readonly partitionId: string
  /** Null: its messages are independent. */
  readonly partition: string | null
  readonly attempt: number
  readonly expiresAtMs: number
  readonly messages: LeasedMessage[]
}

export interface LeasedMessage {
  readonly seq: number
  readonly id: string
  /** When it entered the log: of a message that was scheduled, the time of its promotion. */
  readonly createdAtMs: number
  readonly pushedAtMs: number
  readonly transactionId: string | null
  readonly traceId: string | null
  /** JSON text. */
  readonly payload: string
  readonly headers: string | null
}

export type PopStatus = 'messages' | 'empty' | 'contended' | 'paused'

export interface PopResult {
  readonly status: PopStatus
  /** The time of the call by the database clock. */
  readonly databaseTimeMs: number
  /** When promotion must run, because a rate withholds messages until then. Null: no rate does. */
  readonly opensAtMs: number | null
  readonly leases: Lease[]
}

const popColumns =
  'status, waiter, lease_id, queue, partition_id, partition, attempt, expires_ms, ' +
  'seq, message_id, created_ms, transaction_id, trace_id, payload, headers'

/** All but the last two, which are `durable` and `bytesMax`. */
const popParameters = [
  'text',
  'text',
  'text',
  'text',
  'text',
  'integer[]',
  'integer[]',
  'bigint[]',
  'boolean[]',
  'text[]',
  'text',
  'timestamptz',
  'bigint',
] as const

const popCall = {
  name: 'pop',
  columns: popColumns,
  parameters: [...popParameters, 'boolean', 'bigint'],
}

const popPerMessageCall = {
  ...popCall,
  name: 'pop_v2',
  parameters: [...popCall.parameters, 'boolean[]'],
}

/** Leases messages to waiters of one wait group; several waiters share one call. */
export async function pop(executor: Executor, request: PopRequest): Promise<PopResult> {
  const values = [
    ...popValues(request),
    request.durable ?? false,
    request.bytesMax ?? popBytesMaxDefault,
  ]
  if (!request.demands.some(({ leasePerMessage }) => leasePerMessage === true)) {
    return readPop(await callRows(executor, popCall, values))
  }
  const each = boolArray(request.demands.map(({ leasePerMessage }) => leasePerMessage === true))
  return readPop(await callRows(executor, popPerMessageCall, [...values, each]))
}

function popValues(request: PopRequest): unknown[] {
  const { source, demands, subscription = 'all' } = request
  const named = 'queue' in source ? source : undefined
  const shared = 'queue' in source ? undefined : source
  return [
    named?.queue ?? null,
    named?.partition ?? null,
    shared?.namespace ?? null,
    shared?.task ?? null,
    request.group,
    int4Array(demands.map((demand) => demand.batch)),
    int4Array(demands.map((demand) => demand.partitions)),
    demands.some((demand) => demand.leaseMs !== undefined)
      ? int8Array(demands.map((demand) => demand.leaseMs ?? null))
      : null,
    demands.some((demand) => demand.autoAck === true)
      ? boolArray(demands.map((demand) => demand.autoAck === true))
      : null,
    textArray(demands.map((demand) => demand.holder)),
    typeof subscription === 'object' ? 'from' : subscription,
    typeof subscription === 'object' ? new Date(subscription.fromMs) : null,
    request.after ?? 0,
  ]
}

/** Columns: as `popColumns`. */
function readPop(rows: readonly unknown[][]): PopResult {
  let status: PopStatus = 'empty'
  let databaseTimeMs = 0
  let opensAtMs: number | null = null
  const leases: (Lease & { messages: LeasedMessage[] })[] = []
  for (const row of rows) {
    if (row[0] !== null) {
      status = row[0] as PopStatus
      databaseTimeMs = row[10] as number
      opensAtMs = row[7] as number | null
      continue
    }
    let lease = leases.at(-1)
    if (lease === undefined || !belongsTo(row, lease)) {
      lease = readLease(row)
      leases.push(lease)
    }
    const seq = Number(row[8])
    const storedId = row[9] as string
    const createdAtMs = row[10] as number
    lease.messages.push({
      seq,
      id: messageIdAt(storedId, lease.partitionId, seq),
      createdAtMs,
      pushedAtMs: pushedAtOf(storedId, createdAtMs),
      transactionId: row[11] as string | null,
      traceId: row[12] as string | null,
      payload: row[13] as string,
      headers: row[14] as string | null,
    })
  }
  return { status, databaseTimeMs, opensAtMs, leases }
}

function belongsTo(row: readonly unknown[], lease: Lease): boolean {
  const [, waiter, leaseId, , partitionId] = row
  return (
    partitionId === lease.partitionId && leaseId === lease.leaseId && waiter === lease.demand + 1
  )
}

function readLease(row: readonly unknown[]): Lease & { messages: LeasedMessage[] } {
  // A message must never be attributed to another lease.
  if (row[3] === null) throw new Error('rouse.pop returned a lease without its first row')
  return {
    demand: (row[1] as number) - 1,
    leaseId: row[2] as string,
    queue: row[3] as string,
    partitionId: row[4] as string,
    partition: row[5] as string | null,
    attempt: row[6] as number,
    expiresAtMs: row[7] as number,
    messages: [],
  }
}
