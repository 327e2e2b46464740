import type { WaitGroup, WakeHint } from '@rouse/protocol'
import fc from 'fast-check'
import { test } from 'tap'
import { DeadlineQueue, GroupIndex, groupKey } from '../src/group-table.ts'
import { isMeant } from './support/model-database.ts'

const name = fc.string({
  unit: fc.constantFrom('a', '/', '*', '%', '2', 'F'),
  minLength: 1,
  maxLength: 4,
})
const maybe = fc.option(name, { nil: undefined })
const description: fc.Arbitrary<WaitGroup> = fc.oneof(
  fc.record({ source: fc.record({ queue: name, partition: maybe }), group: name }),
  fc.record({ source: fc.record({ namespace: maybe, task: maybe }), group: name }),
)

test('a key reads as queue, partition and group', async (t) => {
  t.equal(groupKey({ source: { queue: 'orders' }, group: 'billing' }), 'orders/*/billing')
  t.equal(
    groupKey({ source: { queue: 'orders', partition: 'eu' }, group: 'billing' }),
    'orders/eu/billing',
  )
  t.equal(groupKey({ source: { namespace: 'shop' }, group: 'g' }), 'namespace/shop/task/*/g')
  t.equal(groupKey({ source: { queue: 'a/b', partition: '*' }, group: '50%' }), 'a%2Fb/%2A/50%25')
})

test('no two wait groups share a key', async () => {
  const plain = ({ source, group }: WaitGroup) =>
    'queue' in source
      ? JSON.stringify(['queue', source.queue, source.partition ?? null, group])
      : JSON.stringify(['shared', source.namespace ?? null, source.task ?? null, group])
  fc.assert(
    fc.property(description, description, (one, other) => {
      return (groupKey(one) === groupKey(other)) === (plain(one) === plain(other))
    }),
    { numRuns: 2_000 },
  )
})

const few = fc.constantFrom('a', 'b', '*')
const fewOrNone = fc.option(few, { nil: undefined })
const fewDescriptions = fc.array(
  fc.oneof(
    fc.record({ source: fc.record({ queue: few, partition: fewOrNone }), group: few }),
    fc.record({ source: fc.record({ namespace: fewOrNone, task: fewOrNone }), group: few }),
  ),
  { maxLength: 30 },
)

test('a hint finds exactly the groups that could deliver it', async () => {
  const fewOrNull = fc.option(few, { nil: null })
  const hints = fc.record({
    queue: few,
    partition: few,
    namespace: fewOrNull,
    task: fewOrNull,
    group: fewOrNull,
  })
  fc.assert(
    fc.property(fewDescriptions, hints, (descriptions, hint) => {
      const groups = descriptions.map((one) => ({ description: one as WaitGroup }))
      const index = new GroupIndex<(typeof groups)[number]>()
      for (const group of groups) index.add(group)
      const expected = groups.filter(({ description: one }) => {
        return (hint.group === null || hint.group === one.group) && isMeant(hint, one)
      })
      const found = index.matching(hint)
      for (const group of groups) index.delete(group)
      return (
        found.length === expected.length &&
        expected.every((group) => found.includes(group)) &&
        index.matching(hint).length === 0
      )
    }),
  )
})

test('a hint with missing fields matches every group it may concern', async (t) => {
  const index = new GroupIndex<{ description: WaitGroup }>()
  const descriptions: WaitGroup[] = [
    { source: { queue: 'q', partition: 'a' }, group: 'g' },
    { source: { queue: 'q', partition: 'b' }, group: 'h' },
    { source: { queue: 'q' }, group: 'g' },
    { source: { queue: 'other' }, group: 'g' },
    { source: { namespace: 'n' }, group: 'g' },
    { source: { task: 't' }, group: 'h' },
  ]
  for (const one of descriptions) index.add({ description: one })
  const count = (hint: WakeHint) => index.matching(hint).length
  t.equal(count({ queue: 'q' }), 5)
  t.equal(count({ queue: 'q', namespace: null, task: null }), 3)
  t.equal(count({ queue: 'q', partition: null, group: 'g', namespace: null, task: null }), 2)
  t.equal(count({ queue: 'q', partition: 'a', namespace: 'n', task: 't' }), 4)
  t.equal(index.ofQueue('q').length, 3)
})

test('the first member added is due first, and adding it again restarts its delay', async (t) => {
  const queue = new DeadlineQueue<string>(10)
  t.equal(queue.firstDueAt(), Number.POSITIVE_INFINITY)
  queue.add('a', 0)
  queue.add('b', 2)
  queue.add('a', 5)
  queue.add('c', 6)
  t.equal(queue.firstDueAt(), 12)
  t.equal(
    queue.find(() => true),
    'b',
  )
  t.equal(
    queue.find((member) => member > 'b'),
    'c',
  )
  t.equal(
    queue.find(() => false),
    undefined,
  )
  t.same(queue.takeDue(11), [])
  t.same(queue.takeDue(15), ['b', 'a'])
  queue.delete('c')
  t.equal(queue.firstDueAt(), Number.POSITIVE_INFINITY)
})
