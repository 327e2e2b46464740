import type { WakeHint } from '@rouse/protocol'

const fields = ['queue', 'partition', 'consumer_group', 'namespace', 'task', 'count']

/** For functions that return `setof rouse.wake_hint`. */
export const wakeHintColumns = fields.join(', ')

/** For functions with a column `hint`: PostgreSQL splits it, so that no composite text must be parsed here. */
export const hintFields = fields.map((field) => `(hint).${field}`).join(', ')

/** Reads the fields above from a row, starting at `at`. */
export function readWakeHint(row: readonly unknown[], at = 0): WakeHint {
  return {
    queue: row[at] as string,
    partition: row[at + 1] as string | null,
    group: row[at + 2] as string | null,
    namespace: row[at + 3] as string | null,
    task: row[at + 4] as string | null,
    count: row[at + 5] === null ? undefined : Number(row[at + 5]),
  }
}
