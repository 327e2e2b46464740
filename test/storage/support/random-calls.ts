// Random sequences of calls on one queue with three partitions and independent messages, for comparisons of two databases.
import type { AckStatus } from '@rouse/storage'
import fc from 'fast-check'

export interface Item {
  /** 3: the message has no partition. */
  readonly partition: number
  readonly headers: boolean
  readonly trace: boolean
  readonly key: number | undefined
  readonly delayMs: number | undefined
}

/** One message of one of the leases so far. */
export interface Held {
  readonly lease: number
  readonly position: number
}

export type Step =
  | { do: 'push'; items: Item[] }
  | { do: 'deliver'; item: Item; group: string; leaseMs: number | undefined }
  | {
      do: 'pop'
      group: string
      partition: number | undefined
      batch: number
      lanes: number
      waiters: number
      leaseMs: number | undefined
      autoAck: boolean
      after: number
      bytesMax: number | undefined
      durable: boolean
    }
  | { do: 'finish'; leases: number[]; group: string | undefined }
  | { do: 'release'; lease: number }
  | { do: 'complete'; held: Held[]; group: string | undefined }
  | { do: 'end'; lease: number; ends: { position: number; status: AckStatus }[] }
  | { do: 'transact'; lease: number; items: Item[] }
  | { do: 'advance'; ms: number }
  | { do: 'maintain' }
  | { do: 'lose rows' }
  | { do: 'pause'; paused: boolean }

export interface Sequence {
  readonly options: Record<string, unknown>
  readonly steps: Step[]
}

/** Queue options. Each makes some call take its general form, or changes what a call returns. */
const options = fc.constantFrom<Record<string, unknown>>(
  {},
  {},
  {},
  {},
  {},
  {},
  { dedupWindowSeconds: 1 },
  { dedupWindowSeconds: 0 },
  { delayedProcessing: 1 },
  { ttl: 3 },
  { rate: { limit: 3, perMs: 2_000 } },
  { partitionRate: { limit: 2, perMs: 1_000 } },
  { maxInFlightPerPartition: 2 },
  { maxInFlightPerPartition: 2, ordering: 'none' },
  { maxWaitTimeSeconds: 3 },
  { windowBuffer: 1 },
  { maxSize: 6 },
  { maxInFlight: 2 },
  { ordering: 'none' },
  { ordering: 'none' },
  { ordering: 'partition' },
  { ordering: 'none', maxInFlight: 2 },
  { onFailure: 'skip', retryLimit: 1 },
  { retryBackoffMs: [1_000] },
  { encryptionEnabled: true },
  { deadLetterQueue: false, retryLimit: 0 },
)

const seldom = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value })

const mostly = <Value>(usual: Value, other: Value): fc.Arbitrary<Value> =>
  seldom(fc.constant(other)).map((found) => found ?? usual)

const item: fc.Arbitrary<Item> = fc.record({
  partition: fc.nat({ max: 3 }),
  headers: fc.boolean(),
  trace: fc.boolean(),
  key: seldom(fc.nat({ max: 3 })),
  delayMs: seldom(fc.constantFrom(0, 500)),
})

/** A third of the lists have one target, and a third have keys and no delays. */
const items = fc.oneof(
  fc.array(item, { minLength: 1, maxLength: 4 }),
  fc
    .tuple(fc.nat({ max: 3 }), fc.array(item, { minLength: 1, maxLength: 4 }))
    .map(([partition, some]) => some.map((one) => ({ ...one, partition }))),
  fc
    .tuple(
      fc.boolean(),
      fc.array(fc.tuple(item, fc.nat({ max: 6 })), { minLength: 1, maxLength: 3 }),
    )
    .map(([isOne, some]) =>
      some.map(([one, key]) => ({
        ...one,
        partition: isOne ? 0 : one.partition,
        key: key === 6 ? undefined : key,
        delayMs: undefined,
      })),
    ),
)

const lease = fc.nat({ max: 5 })
const group = fc.constantFrom(undefined, undefined, 'g', 'h')
const held: fc.Arbitrary<Held> = fc.record({ lease, position: fc.nat({ max: 3 }) })

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('push' as const), items }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('pop' as const),
      group: mostly('g', 'h'),
      partition: seldom(fc.nat({ max: 3 })),
      batch: fc.integer({ min: 1, max: 4 }),
      lanes: fc.constantFrom(1, 1, 1, 2, 3),
      waiters: fc.constantFrom(1, 1, 1, 2, 3),
      leaseMs: fc.constantFrom(undefined, 1_000, 5_000),
      autoAck: mostly(false, true),
      after: fc.constantFrom(0, 0, 0, 1, 2, 3),
      bytesMax: seldom(fc.constantFrom(1, 40, 100)),
      durable: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('finish' as const),
      leases: fc.oneof(
        { weight: 2, arbitrary: lease.map((one) => [one]) },
        { weight: 1, arbitrary: fc.array(lease, { minLength: 2, maxLength: 3 }) },
      ),
      group,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('release' as const), lease }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('complete' as const),
      held: fc.oneof(
        { weight: 2, arbitrary: fc.array(held, { minLength: 1, maxLength: 1 }) },
        { weight: 1, arbitrary: fc.array(held, { minLength: 2, maxLength: 4 }) },
      ),
      group,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      lease,
      ends: fc.array(
        fc.record({
          position: fc.nat({ max: 3 }),
          status: fc.constantFrom<AckStatus>('completed', 'failed', 'retry', 'dlq'),
        }),
        { minLength: 1, maxLength: 3 },
      ),
    }),
  },
  fc.record({ do: fc.constant('transact' as const), lease, items }),
  fc.record({
    do: fc.constant('advance' as const),
    ms: fc.constantFrom(1, 10, 500, 1_000, 1_000, 4_000, 61_000),
  }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant('maintain' as const) }) },
  fc.record({ do: fc.constant('lose rows' as const) }),
  fc.record({ do: fc.constant('pause' as const), paused: mostly(false, true) }),
)

const deliver: fc.Arbitrary<Step> = fc.record({
  do: fc.constant('deliver' as const),
  item: item.map((one) => ({ ...one, delayMs: undefined })),
  group: mostly('g', 'h'),
  leaseMs: fc.constantFrom(undefined, 1_000, 5_000),
})

export const sequences: fc.Arbitrary<Sequence> = fc
  .tuple(options, items, fc.array(step, { minLength: 10, maxLength: 30 }))
  .map(([chosen, some, steps]) => ({
    options: chosen,
    steps: [{ do: 'push', items: some }, ...steps],
  }))

/**
 * Sequences with pushes that deliver their messages. The lanes of group g are drained first. Every pop has one waiter
 * and takes one lane: the forms differ in which drained lanes they settle, and in which waiter gets the rest of a lane
 * with missing rows.
 */
export const deliveringSequences: fc.Arbitrary<Sequence> = fc
  .tuple(
    options,
    items,
    fc.array(fc.oneof({ weight: 2, arbitrary: step }, { weight: 1, arbitrary: deliver }), {
      minLength: 10,
      maxLength: 30,
    }),
  )
  .map(([chosen, some, steps]) => ({
    options: chosen,
    steps: [
      { do: 'push' as const, items: some },
      ...Array.from({ length: 5 }, () => drain),
      ...steps,
    ].map((one: Step): Step => (one.do === 'pop' ? { ...one, lanes: 1, waiters: 1 } : one)),
  }))

const drain: Step = {
  do: 'pop',
  group: 'g',
  partition: undefined,
  batch: 10,
  lanes: 1,
  waiters: 1,
  leaseMs: undefined,
  autoAck: true,
  after: 0,
  bytesMax: undefined,
  durable: false,
}
