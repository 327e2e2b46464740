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
  readonly group: string
  /** Absent: the queue's lease time. */
  readonly leaseMs?: number | undefined
  readonly holder: string
}

export interface DirectPushResult extends PushResult {
  /** Absent: the message was stored like any other, and its hints are in `woken`. */
  readonly lease?: Lease | undefined
}

const pushDirectCall = {
  name: 'push_direct',
  columns:
    'target, partition_id, first_seq, added, namespace, task, duplicates, originals, scheduled, ' +
    'replaced, partition, lease_id, created_ms, expires_ms',
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
    lockTimeoutMs ?? null,
  ])
  const result = readPush(groupByTarget([item]), rows)
  const row = rows[0] as unknown[]
  if (row[11] === null) return result
  const woken = result.woken.map((hint) => ({ ...hint, except: demand.group }))
  return { items: result.items, woken, lease: readLease(item, row) }
}

function readLease(item: NewMessage, row: readonly unknown[]): Lease {
  const [partitionId, seq] = [row[1] as string, Number(row[2])]
  const createdAtMs = row[12] as number
  return {
    demand: 0,
    leaseId: row[11] as string,
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
