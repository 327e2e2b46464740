import { messageIdAt, withPlace } from '@rouse/protocol'
import {
  enqueueMany,
  type NewMessage,
  promotePartition,
  push,
  transaction,
  uniqueOf,
} from '@rouse/storage'
import type pg from 'pg'
import type { Measure } from '../support/measure.ts'

const [first, second] = [
  withPlace('019a0000-0000-7000-8000-000000000011'),
  withPlace('019a0000-0000-7000-8000-000000000012'),
]

function item(id: string, more: Partial<NewMessage> = {}): NewMessage {
  const options = { unique: { key: 'k' } }
  return { queue: 'hot', partition: 'p0', id, payload: '1', options, ...more }
}

const replacing = { options: { unique: { key: 'k', onConflict: 'replace' } } } as const
const enqueued = { queue: 'hot', partition: 'p0', payload: 1, unique: { key: 'k' } }

let place: { readonly partitionId: string; readonly seq: number } | undefined

async function pushed(client: pg.ClientBase): Promise<void> {
  const [one] = (await push(client, [item(first)])).items
  if (one?.status === 'queued') place = one
}

/** The state of a key depends on the groups of its queue, which are as many in the small database. */
export const unique: readonly Measure[] = [
  { name: 'a push with a unique key', call: (probe) => push(probe, [item(first)]) },
  {
    name: 'a push whose unique key another message has',
    prepare: pushed,
    call: (probe) => push(probe, [item(second)]),
  },
  {
    name: 'a push that replaces a message of the hot queue',
    prepare: pushed,
    call: (probe) => push(probe, [item(second, replacing)]),
  },
  {
    name: 'a push that replaces a scheduled message',
    prepare: (client) => push(client, [item(first, { delayMs: 60_000 })]),
    call: (probe) => push(probe, [item(second, replacing)]),
  },
  {
    name: 'a transaction that pushes a message with a unique key',
    call: (probe) => transaction(probe, { acks: [], pushes: [item(first)] }),
  },
  {
    name: 'the unique key of a message',
    prepare: pushed,
    call: (probe) => uniqueOf(probe, messageIdAt(first, place?.partitionId ?? '', place?.seq ?? 0)),
  },
  {
    name: 'a message with a unique key enqueued by SQL',
    call: (probe) => enqueueMany(probe, [enqueued]),
  },
  {
    name: 'promotion of a message with a unique key',
    prepare: async (client) => {
      await pushed(client)
      await enqueueMany(client, [enqueued, { ...enqueued, unique: { key: 'other' } }])
    },
    call: (probe) =>
      promotePartition(probe, { queue: 'hot', partition: 'p0' }, { limit: 100, lockMs: 100 }),
  },
]
