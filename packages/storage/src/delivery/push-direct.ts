// A push of one message that is delivered in the same call to a request that waits for it.
import { messageIdAt, pushedAtOf, shownPartition } from '@rouse/protocol'
import { callRows, type Executor } from '../executor.ts'
import type { Lease } from './pop.ts'
import {
  groupByTarget,
  type NewMessage,
  type PushResult,
  readPush,
  targetPartition,
} from './push.ts'

/** The waiting request that gets the message. */
export interface DirectDemand {
  /** The id of the lease, if the message is leased. */
  readonly leaseId: string
  readonly group: string
  /** Absent: the queue's lease time. */
  readonly leaseMs?: number | undefined
  readonly holder: string
}

export interface DirectPushResult extends PushResult {
  /** Absent: the message was stored like any other, and its hints are in `woken`. */
  readonly lease?: Lease | undefined
  /** The time of the lease by the database clock. */
  readonly databaseTimeMs?: number | undefined
}

const pushDirectCall = {
  name: 'push_direct',
  columns:
    'target, partition_id, first_seq, added, namespace, task, duplicates, originals, scheduled, ' +
    'replaced, partition, created_ms, leased_ms, expires_ms',
  parameters: [
    'text',
    'text',
    'uuid',
    'text',
    'text',
    'text',
    'text',
    'text',
    'bigint',
    'text',
    'uuid',
    'integer',
  ],
}

/** Whether the message is plain enough: neither scheduled, nor with options or a priority. */
export function canPushDirectly(item: NewMessage): boolean {
  const { delayMs, runAtMs, priority, options } = item
  return (delayMs ?? runAtMs ?? options) === undefined && (priority ?? 0) === 0
}

export async function pushDirect(
  executor: Executor,
  item: NewMessage,
  demand: DirectDemand,
  lockTimeoutMs: number | undefined,
): Promise<DirectPushResult> {
  const rows = await callRows(executor, pushDirectCall, [
    item.queue,
    targetPartition(item) ?? null,
    item.id,
    item.payload,
    item.transactionId ?? null,
    item.traceId ?? null,
    item.headers ?? null,
    demand.group,
    demand.leaseMs ?? null,
    demand.holder,
    demand.leaseId,
    lockTimeoutMs ?? null,
  ])
  const result = readPush(groupByTarget([item]), rows)
  const row = rows[0] as unknown[]
  if (row[11] === null) return result
  const woken = result.woken.map((hint) => ({ ...hint, except: demand.group }))
  const lease = readLease(item, demand.leaseId, row)
  return { items: result.items, woken, lease, databaseTimeMs: row[12] as number }
}

function readLease(item: NewMessage, leaseId: string, row: readonly unknown[]): Lease {
  const [partitionId, seq] = [row[1] as string, Number(row[2])]
  const createdAtMs = row[11] as number
  return {
    demand: 0,
    leaseId,
    queue: item.queue,
    partitionId,
    partition: shownPartition(row[10] as string),
    attempt: 1,
    expiresAtMs: row[13] as number,
    messages: [
      {
        seq,
        id: messageIdAt(item.id, partitionId, seq),
        createdAtMs,
        pushedAtMs: pushedAtOf(item.id, createdAtMs),
        transactionId: item.transactionId ?? null,
        traceId: item.traceId ?? null,
        payload: item.payload,
        headers: item.headers ?? null,
      },
    ],
  }
}
