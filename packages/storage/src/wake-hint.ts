import type { WakeHint } from '@rouse/protocol'

export const wakeHintColumns = 'queue, partition, consumer_group, namespace, task, count'

/** Reads the columns above from a row, starting at `at`. */
export function readWakeHint(row: readonly unknown[], at = 0): WakeHint {
  return {
    queue: row[at] as string,
    partition: row[at + 1] as string | null,
    group: row[at + 2] as string | null,
    namespace: row[at + 3] as string | null,
    task: row[at + 4] as string | null,
    count: Number(row[at + 5]),
  }
}
