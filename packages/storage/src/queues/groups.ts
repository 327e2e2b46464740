import type { WakeHint } from '@rouse/protocol'
import { callRows, type Executor } from '../executor.ts'
import { readWakeHint, wakeHintColumns } from '../wake-hint.ts'

const seekCall = {
  name: 'seek',
  columns: wakeHintColumns,
  parameters: ['text', 'text', 'timestamptz'],
}

/** Moves a consumer group to a time, or to the end of its queue. */
export async function seek(
  executor: Executor,
  target: { readonly queue: string; readonly group: string; readonly to: Date | 'end' },
): Promise<WakeHint[]> {
  const time = target.to === 'end' ? null : target.to
  const rows = await callRows(executor, seekCall, [target.queue, target.group, time])
  return rows.map((row) => readWakeHint(row))
}

const deleteGroupCall = {
  name: 'delete_group',
  columns: 'delete_group',
  parameters: ['text', 'text'],
}

/** Deletes a consumer group with its state; resolves to whether it existed. */
export async function deleteGroup(
  executor: Executor,
  queue: string,
  group: string,
): Promise<boolean> {
  const rows = await callRows(executor, deleteGroupCall, [queue, group])
  return rows[0]?.[0] === true
}
