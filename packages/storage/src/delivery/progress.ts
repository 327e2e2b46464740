import { int8Array, textArray, uuidArray } from '../binary-array.ts'
import { callRows, type Executor } from '../executor.ts'

export interface ProgressReport {
  /** The id of the message, as users see it. */
  readonly id: string
  readonly leaseId: string
  readonly partitionId: string
  readonly seq: number
  /** JSON text. */
  readonly progress: string
}

const progressCall = {
  name: 'report_progress',
  columns: 'n',
  parameters: ['uuid[]', 'uuid[]', 'bigint[]', 'bigint[]', 'text[]'],
}

/** Stores how far holders of messages are. Per report: whether its lease still holds that message. */
export async function reportProgress(
  executor: Executor,
  reports: readonly ProgressReport[],
): Promise<boolean[]> {
  const rows = await callRows(executor, progressCall, [
    uuidArray(reports.map(({ id }) => id)),
    uuidArray(reports.map(({ leaseId }) => leaseId)),
    int8Array(reports.map(({ partitionId }) => partitionId)),
    int8Array(reports.map(({ seq }) => seq)),
    textArray(reports.map(({ progress }) => progress)),
  ])
  const accepted = new Set(rows.map(([n]) => n as number))
  return reports.map((_, i) => accepted.has(i + 1))
}
