// How long messages of priority 0 wait behind higher ones. Priorities are strict, so they can wait for ever.
// This test measures when they do; docs/guides/priorities.md has the figures.
import { push } from '@rouse/storage'
import { test } from 'tap'
import { newId } from '../support/new-id.ts'
import { finish, message, openStorage, start } from '../support/storage.ts'

/** Consumers take this many messages a second. */
const capacity = 10
const backlog = 20
const secondsMax = 40

interface Starved {
  /** The second in which the first and the last waiting message is delivered; null: not within secondsMax. */
  readonly first: number | null
  readonly last: number | null
}

/** A backlog of priority 0, while messages of priority 1 arrive every second. Each second has 10 pops of one message. */
const cases: readonly (readonly [arriving: number, expected: Starved])[] = [
  [0, { first: 0, last: 1 }],
  [5, { first: 0, last: 3 }],
  [9, { first: 0, last: 19 }],
  [10, { first: null, last: null }],
]

for (const [arriving, expected] of cases) {
  test(`${arriving} messages of priority 1 a second, for consumers of ${capacity} a second`, async (t) => {
    const { advanceClock, freezeClock, pool, set, take } = await openStorage(t)
    await freezeClock(start)
    await set('q', { leaseTime: 3_600 })
    const add = (count: number, priority: number) =>
      push(
        pool,
        Array.from({ length: count }, () =>
          message('q', undefined, priority, { id: newId(), priority }),
        ),
      )
    await add(backlog, 0)
    const low: number[] = []
    let high = 0
    for (let second = 0; second < secondsMax && low.length < backlog; second += 1) {
      if (arriving > 0) await add(arriving, 1)
      for (let turn = 0; turn < capacity; turn += 1) {
        const { leases } = await take('q')
        for (const lease of leases) {
          for (const { payload } of lease.messages) {
            if (payload === '0') low.push(second)
            else high += 1
          }
          await finish(pool, lease)
        }
      }
      await advanceClock(1_000)
    }
    const found = {
      first: low[0] ?? null,
      last: low.length < backlog ? null : (low.at(-1) ?? null),
    }
    t.comment(`first after ${found.first} s, last after ${found.last} s; ${high} of priority 1`)
    t.same(found, expected)
  })
}
