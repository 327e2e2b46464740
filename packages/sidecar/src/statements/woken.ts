/** A lane that a call made deliverable, or may have. A null group stands for every group of the queue. */
export interface Woken {
  readonly queue: string
  readonly partition: string | null
  readonly group: string | null
  readonly namespace: string | null
  readonly task: string | null
  readonly count: number
}

export const wokenColumns = 'queue, partition, consumer_group, namespace, task, count'

/** Reads the columns above from a row, beginning at `at`. */
export function readWoken(row: readonly unknown[], at = 0): Woken {
  return {
    queue: row[at] as string,
    partition: row[at + 1] as string | null,
    group: row[at + 2] as string | null,
    namespace: row[at + 3] as string | null,
    task: row[at + 4] as string | null,
    count: Number(row[at + 5]),
  }
}
