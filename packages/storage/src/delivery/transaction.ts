import type { WakeHint } from '@rouse/protocol'
import { callRows, type Executor } from '../executor.ts'
import { hintFields, readWakeHint } from '../wake-hint.ts'
import { type AckItem, ackParameters, ackValues, resultValues } from './ack.ts'
import {
  groupByTarget,
  type NewMessage,
  type PushedMessage,
  pushParameters,
  pushValues,
  readPush,
  renumberItem,
} from './push.ts'

export interface TransactionRequest {
  readonly acks: readonly AckItem[]
  readonly pushes: readonly NewMessage[]
  readonly group?: string | undefined
}

export interface CommittedTransaction {
  readonly pushed: PushedMessage[]
  readonly deadLettered: number[]
  readonly woken: WakeHint[]
}

/**
 * The index of the first column that `readPush` reads. The columns before it belong to the acknowledgement.
 */
const pushColumnsAt = 8
const transactionCall = {
  name: 'transaction',
  columns:
    `kind, dead, ${hintFields}, ` +
    'target, partition_id, first_seq, (hint).count::integer, (hint).namespace, (hint).task, ' +
    'duplicates, originals, scheduled, replaced, (hint).partition',
  parameters: [...ackParameters, ...pushParameters],
}

const transactionWithResultsCall = {
  ...transactionCall,
  name: 'transaction_with_results',
  parameters: ['text[]', ...transactionCall.parameters],
}

/** Acknowledges and pushes atomically. A refused item raises RS409 or RS400 and nothing changes. */
export async function transaction(
  executor: Executor,
  { acks, pushes, group }: TransactionRequest,
): Promise<CommittedTransaction> {
  const batch = groupByTarget(pushes)
  const values = [
    ...(acks.length > 0 ? ackValues(acks, group) : ackParameters.map(() => null)),
    ...(pushes.length > 0 ? pushValues(batch) : pushParameters.map(() => null)),
  ]
  const results = resultValues(acks)
  const called =
    results === undefined
      ? callRows(executor, transactionCall, values)
      : callRows(executor, transactionWithResultsCall, [results, ...values])
  const rows = await called.catch((error: unknown) => {
    throw renumberItem(error, batch)
  })
  const ackRows = rows.filter((row) => row[0] === 'ack')
  const pushRows = rows.filter((row) => row[0] === 'push').map((row) => row.slice(pushColumnsAt))
  const pushed = readPush(batch, pushRows)
  return {
    pushed: pushed.items,
    deadLettered: ((ackRows.at(-1)?.[1] as number[] | null) ?? []).map((n) => n - 1),
    woken: [
      ...ackRows.filter((row) => row[2] !== null).map((row) => readWakeHint(row, 2)),
      ...pushed.woken,
    ],
  }
}
