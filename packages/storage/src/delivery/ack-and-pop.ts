import { callRows, type Executor } from '../executor.ts'
import { hintFields } from '../wake-hint.ts'
import { type AckedBatch, type AckItem, ackParameters, ackValues, readAck } from './ack.ts'
import {
  type PopRequest,
  type PopResult,
  popBytesMaxDefault,
  popColumns,
  popParameters,
  popValues,
  readPop,
} from './pop.ts'

export interface AckAndPopRequest {
  /** Without results. */
  readonly acks: readonly Omit<AckItem, 'result'>[]
  /** Leases of other groups are rejected. */
  readonly group?: string | undefined
  /** The lease is always durable. */
  readonly pop: Omit<PopRequest, 'durable'>
}

export interface AckAndPopResult {
  readonly acked: AckedBatch
  /** Absent: the pop needs a separate call. */
  readonly popped: PopResult | undefined
}

/** The index of the first column of the ack: the columns before it belong to the pop. */
const ackColumnsAt = popColumns.split(', ').length
const ackAndPopCall = {
  name: 'ack_and_pop',
  columns: `${popColumns}, rejected, dead, ${hintFields}`,
  parameters: [...ackParameters, ...popParameters, 'bigint'],
}

/**
 * Acknowledges at least one message, then pops, in one transaction. If it fails, neither has happened, also if
 * only the pop has failed.
 */
export async function ackAndPop(
  executor: Executor,
  { acks, group, pop }: AckAndPopRequest,
): Promise<AckAndPopResult> {
  const rows = await callRows(executor, ackAndPopCall, [
    ...ackValues(acks, group),
    ...popValues(pop),
    pop.bytesMax ?? popBytesMaxDefault,
  ])
  // The acks end with the row that has their rejected items.
  const last = rows.findIndex((row) => row[ackColumnsAt] !== null)
  const ackRows = rows.slice(0, last + 1).map((row) => row.slice(ackColumnsAt))
  const popRows = rows.slice(last + 1)
  return {
    acked: readAck(ackRows),
    popped: popRows.length === 0 ? undefined : readPop(popRows),
  }
}
