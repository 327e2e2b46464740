import { int8Array, textArray, uuidArray } from '../binary-array.ts'
import { callRows, type Executor } from '../executor.ts'
import type { HeldMessage, MessageName } from './holdings.ts'

/** A message by its transaction id, inside the lease that holds it. */
export interface HeldName extends MessageName {
  readonly leaseId: string
}

const findHeldCall = {
  name: 'find_held',
  columns: 'lease_id, partition_id, transaction_id, seq::float8',
  parameters: ['uuid[]', 'bigint[]', 'text[]'],
}

/**
 * Finds messages by stored transaction ids. A name that its lease does not hold is left out. This only reads:
 * the ack checks the lease again.
 */
export async function findHeld(
  executor: Executor,
  names: readonly HeldName[],
): Promise<HeldMessage[]> {
  // PostgreSQL text cannot contain NUL, so no stored id does.
  const storable = names.filter(({ transactionId }) => !transactionId.includes('\0'))
  if (storable.length === 0) return []
  const rows = await callRows(executor, findHeldCall, [
    uuidArray(storable.map(({ leaseId }) => leaseId)),
    int8Array(storable.map(({ partitionId }) => partitionId)),
    textArray(storable.map(({ transactionId }) => transactionId)),
  ])
  return (rows as [string, string, string, number][]).map(
    ([leaseId, partitionId, transactionId, seq]) => ({ leaseId, partitionId, transactionId, seq }),
  )
}
