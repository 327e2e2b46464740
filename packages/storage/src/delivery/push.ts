import type { WakeHint } from '@rouse/protocol'
import { int4Array, int8Array, textArray, timestampArray, uuidArray } from '../binary-array.ts'
import { callRows, type Executor } from '../executor.ts'

export interface PushItem {
  readonly queue: string
  readonly partition: string
  /** A UUIDv7 made by the caller. */
  readonly id: string
  /** JSON text, stored as it is. */
  readonly payload: string
  readonly transactionId?: string | undefined
  readonly traceId?: string | undefined
  readonly headers?: string | undefined
  readonly delayMs?: number | undefined
  readonly runAtMs?: number | undefined
}

export type PushedItem =
  | { status: 'queued'; messageId: string; partitionId: string; seq: number }
  | { status: 'duplicate'; messageId: string; partitionId: string }
  | { status: 'scheduled'; messageId: string; partitionId: string }

export interface PushResult {
  /** In the order of the items. */
  readonly items: PushedItem[]
  readonly woken: WakeHint[]
}

export const pushParameters = [
  'text[]',
  'text[]',
  'integer[]',
  'uuid[]',
  'text[]',
  'text[]',
  'text[]',
  'text[]',
  'bigint[]',
  'timestamptz[]',
] as const

export interface PushOptions {
  /** How long to wait for a partition that somebody else holds; then SQLSTATE 55P03. */
  readonly lockTimeoutMs?: number | undefined
}

const pushCall = {
  name: 'push',
  columns:
    'target, partition_id, first_seq, added, namespace, task, duplicates, originals, scheduled',
  parameters: [...pushParameters, 'integer'],
}

/** Appends messages: all or nothing. */
export async function push(
  executor: Executor,
  items: readonly PushItem[],
  options: PushOptions = {},
): Promise<PushResult> {
  if (items.length === 0) return { items: [], woken: [] }
  const batch = groupByTarget(items)
  const values = [...pushValues(batch), options.lockTimeoutMs ?? null]
  try {
    return readPush(batch, await callRows(executor, pushCall, values))
  } catch (error) {
    throw renumberItem(error, batch)
  }
}

/**
 * The functions name a bad item by its position in the call; the caller knows it by its place in the list. Rewrites
 * the `item` in the detail of such an error (1-based, as everywhere in details).
 */
export function renumberItem(error: unknown, batch: PushBatch): unknown {
  if (!(error instanceof Error) || !('detail' in error) || typeof error.detail !== 'string') {
    return error
  }
  const match = /"item": (\d+)/.exec(error.detail)
  const index = match === null ? undefined : batch.order[Number(match[1]) - 1]
  if (index !== undefined)
    error.detail = error.detail.replace(/"item": \d+/, `"item": ${index + 1}`)
  return error
}

/** The items of a call in groups by target, as the SQL function wants them. */
export interface PushBatch {
  readonly items: readonly PushItem[]
  /** For each position in the call, the position in the caller's list. */
  readonly order: readonly number[]
  readonly targets: readonly { queue: string; partition: string }[]
  /** By position in the call, 1-based. */
  readonly targetOf: readonly number[]
}

export function groupByTarget(items: readonly PushItem[]): PushBatch {
  const groups = new Map<string, Map<string, number[]>>()
  items.forEach((item, index) => {
    let partitions = groups.get(item.queue)
    if (partitions === undefined) groups.set(item.queue, (partitions = new Map()))
    const members = partitions.get(item.partition)
    if (members === undefined) partitions.set(item.partition, [index])
    else members.push(index)
  })
  const order: number[] = []
  const targets: { queue: string; partition: string }[] = []
  const targetOf: number[] = []
  for (const [queue, partitions] of groups) {
    for (const [partition, members] of partitions) {
      targets.push({ queue, partition })
      for (const index of members) {
        order.push(index)
        targetOf.push(targets.length)
      }
    }
  }
  return { items, order, targets, targetOf }
}

export function pushValues({ items, order, targets, targetOf }: PushBatch): unknown[] {
  const sorted = order.map((index) => items[index] as PushItem)
  return [
    textArray(targets.map((target) => target.queue)),
    textArray(targets.map((target) => target.partition)),
    int4Array(targetOf),
    uuidArray(sorted.map((item) => item.id)),
    textArray(sorted.map((item) => item.payload)),
    optional(sorted, (item) => item.transactionId, textArray),
    optional(sorted, (item) => item.traceId, textArray),
    optional(sorted, (item) => item.headers, textArray),
    optional(sorted, (item) => item.delayMs, int8Array),
    optional(sorted, (item) => item.runAtMs, timestampArray),
  ]
}

/** An array where any item has the field, else null: absent arrays cost the database nothing. */
function optional<V>(
  items: readonly PushItem[],
  field: (item: PushItem) => V | undefined,
  encode: (values: (V | null)[]) => Buffer,
): Buffer | null {
  if (!items.some((item) => field(item) !== undefined)) return null
  return encode(items.map((item) => field(item) ?? null))
}

/** Rows of: target, partition_id, first_seq, added, namespace, task, duplicates, originals, scheduled. */
export function readPush(batch: PushBatch, rows: readonly unknown[][]): PushResult {
  const results: PushedItem[] = Array.from({ length: batch.items.length })
  const woken: WakeHint[] = []
  let position = 0
  for (const row of rows) {
    const [target, partitionId, firstSeq, added, namespace, task] = row as [
      number,
      string,
      string | null,
      number,
      string | null,
      string | null,
    ]
    const duplicates = row[6] === null ? undefined : originalsOf(row)
    const scheduled = row[8] === null ? undefined : new Set(row[8] as number[])
    let seq = Number(firstSeq)
    for (; batch.targetOf[position] === target; position += 1) {
      const index = batch.order[position] as number
      const messageId = (batch.items[index] as PushItem).id
      const original = duplicates?.get(position + 1)
      if (original !== undefined) {
        results[index] = { status: 'duplicate', messageId: original, partitionId }
      } else if (scheduled?.has(position + 1)) {
        results[index] = { status: 'scheduled', messageId, partitionId }
      } else {
        results[index] = { status: 'queued', messageId, partitionId, seq }
        seq += 1
      }
    }
    const { queue, partition } = batch.targets[target - 1] as { queue: string; partition: string }
    if (added > 0) woken.push({ queue, partition, group: null, namespace, task, count: added })
  }
  return { items: results, woken }
}

/** By 1-based position in the call, the message of which it is a duplicate. */
function originalsOf(row: readonly unknown[]): Map<number, string> {
  const originals = row[7] as string[]
  return new Map((row[6] as number[]).map((n, i) => [n, originals[i] as string]))
}
