import type { WakeHint } from '@rouse/protocol'
import { int8Array, textArray, uuidArray } from '../binary-array.ts'
import { callRows, type Executor } from '../executor.ts'
import { hintFields, readWakeHint } from '../wake-hint.ts'

export type AckStatus = 'completed' | 'failed' | 'retry' | 'dlq'

export interface AckItem {
  readonly leaseId: string
  /** Absent: all remaining messages of the lease. */
  readonly message?: { readonly partitionId: string; readonly seq: number } | undefined
  /** Absent: completed. */
  readonly status?: AckStatus | undefined
  readonly errorCode?: string | undefined
  readonly errorMessage?: string | undefined
  /** The delay of a `retry`. For `failed`, it replaces the queue's retry delay. */
  readonly delayMs?: number | undefined
  /** JSON text, for a completed message that the item names. */
  readonly result?: string | undefined
}

export interface AckedBatch {
  /** Positions of items whose lease did not hold the message. These items changed nothing. */
  readonly rejected: number[]
  readonly deadLettered: number[]
  readonly woken: WakeHint[]
}

export const ackParameters = [
  'uuid[]',
  'bigint[]',
  'bigint[]',
  'text[]',
  'text[]',
  'text[]',
  'bigint[]',
  'text',
] as const

const ackCall = {
  name: 'ack',
  columns: `rejected, dead, ${hintFields}`,
  parameters: ackParameters,
}

const ackWithResultsCall = {
  ...ackCall,
  name: 'ack_v2',
  parameters: [...ackParameters, 'text[]'],
}

/** Acknowledges messages. If a group is given, leases of other groups are rejected. */
export async function ack(
  executor: Executor,
  items: readonly AckItem[],
  group?: string,
): Promise<AckedBatch> {
  if (items.length === 0) return { rejected: [], deadLettered: [], woken: [] }
  const values = ackValues(items, group)
  const results = resultValues(items)
  return readAck(
    results === undefined
      ? await callRows(executor, ackCall, values)
      : await callRows(executor, ackWithResultsCall, [...values, results]),
  )
}

/** The results of the items; undefined if none has one. */
export function resultValues(items: readonly AckItem[]): unknown {
  if (!items.some(({ result }) => result !== undefined)) return undefined
  return textArray(items.map(({ result }) => result ?? null))
}

/** Columns: rejected, dead, then a wake hint. The last row has no hint. */
function readAck(rows: readonly unknown[][]): AckedBatch {
  const last = rows.at(-1) as unknown[]
  return {
    rejected: (last[0] as number[]).map((n) => n - 1),
    deadLettered: (last[1] as number[]).map((n) => n - 1),
    woken: rows.slice(0, -1).map((row) => readWakeHint(row, 2)),
  }
}

export function ackValues(items: readonly AckItem[], group: string | undefined): unknown[] {
  const plain = items.every((item) => item.status === undefined || item.status === 'completed')
  return [
    uuidArray(items.map((item) => item.leaseId)),
    int8Array(items.map((item) => item.message?.partitionId ?? null)),
    int8Array(items.map((item) => item.message?.seq ?? null)),
    plain ? null : textArray(items.map((item) => item.status ?? 'completed')),
    plain ? null : textArray(items.map((item) => item.errorCode ?? null)),
    plain ? null : textArray(items.map((item) => item.errorMessage ?? null)),
    plain ? null : int8Array(items.map((item) => item.delayMs ?? null)),
    group ?? null,
  ]
}
