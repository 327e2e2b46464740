// Whether messages have ended, for requests that wait for a message to end.
import { placeOfMessageId } from '@rouse/protocol'
import { int4Array, int8Array, textArray, uuidArray } from '../binary-array.ts'
import { callRows, type Executor } from '../executor.ts'

export interface AwaitedMessage {
  readonly id: string
  /** The groups that must have ended it. */
  readonly groups: AwaitedGroups
}

/**
 * One group by its name, or all groups up to the one that was the newest at the request. 0: there was none,
 * and all groups count that exist at the lookup, at least one.
 */
export type AwaitedGroups = { readonly name: string } | { readonly newestId: number }

const endedCall = {
  name: 'ended_messages',
  columns: 'n',
  parameters: ['uuid[]', 'bigint[]', 'bigint[]', 'text[]', 'integer[]'],
}

/** The positions of the messages that have ended, also those that were removed. */
export async function endedMessages(
  executor: Executor,
  messages: readonly AwaitedMessage[],
): Promise<number[]> {
  const places = messages.map(({ id }) => placeOfMessageId(id))
  const rows = await callRows(executor, endedCall, [
    uuidArray(messages.map(({ id }) => id)),
    int8Array(places.map((place) => place?.partitionId ?? null)),
    int8Array(places.map((place) => place?.seq ?? null)),
    textArray(messages.map(({ groups }) => ('name' in groups ? groups.name : null))),
    int4Array(messages.map(({ groups }) => ('newestId' in groups ? groups.newestId : 0))),
  ])
  return rows.map(([n]) => (n as number) - 1)
}

const newestGroupCall = {
  name: 'newest_group',
  columns: 'newest_group',
  parameters: ['text'],
}

/** The id of the newest group of a queue; 0 if it has none. */
export async function newestGroup(executor: Executor, queue: string): Promise<number> {
  const [row] = await callRows(executor, newestGroupCall, [queue])
  return (row as [number])[0]
}
