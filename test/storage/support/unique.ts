// Messages with unique keys, for the tests of test/storage/unique.
import {
  type Executor,
  type NewMessage,
  type PushedMessage,
  push,
  type UniqueKey,
} from '@rouse/storage'
import type { Test } from 'tap'
import { newId } from './new-id.ts'
import { message, openStorage, type Storage, start } from './storage.ts'

type Rest = Partial<NewMessage>

/** A message of `q` with the unique key `k`, by default without a partition. */
export function keyed(
  payload: unknown,
  unique: Partial<UniqueKey> = {},
  rest: Rest = {},
): NewMessage {
  const options = { ...rest.options, unique: { key: 'k', ...unique } }
  return message('q', rest.partition, payload, { id: newId(), ...rest, options })
}

export interface UniqueStorage extends Storage {
  readonly pushAll: (...items: readonly NewMessage[]) => Promise<PushedMessage[]>
  /** Pushes one `keyed` message. */
  readonly add: (
    payload: unknown,
    unique?: Partial<UniqueKey>,
    rest?: Rest,
    on?: Executor,
  ) => Promise<PushedMessage>
  /** Everything that a group gets now, without ending it. */
  readonly taken: (group?: string) => Promise<unknown[]>
}

/** A storage with a frozen clock and the queue `q`. */
export async function openUnique(
  t: Test,
  options: Record<string, unknown> = {},
): Promise<UniqueStorage> {
  const storage = await openStorage(t)
  const { freezeClock, pool, set, take } = storage
  await freezeClock(start)
  await set('q', options)
  return {
    ...storage,
    pushAll: async (...items) => (await push(pool, items)).items,
    add: async (payload, unique, rest, on = pool) =>
      (await push(on, [keyed(payload, unique, rest)])).items[0] as PushedMessage,
    taken: async (group = 'g') => {
      const { leases } = await take('q', { batch: 100, partitions: 100, group })
      return leases.flatMap(({ messages }) => messages.map(({ payload }) => JSON.parse(payload)))
    },
  }
}
