import fc from 'fast-check'
import { test } from 'tap'
import { fromGossip, interestKey, keysOf, toGossip } from '../../src/cluster/hint-codec.ts'

const name = fc.oneof(
  fc.constantFrom('a', 'b', '*', '/', 'a/b', '%2A'),
  fc.string({ minLength: 1 }),
)
const optionalName = fc.option(name, { nil: null })
const hint = fc.record({
  queue: name,
  partition: optionalName,
  group: optionalName,
  namespace: optionalName,
  task: optionalName,
  count: fc.integer({ min: 1, max: 1_000 }),
})

test('a hint arrives as it left', (t) => {
  fc.assert(
    fc.property(hint, (one) => {
      t.same(fromGossip(toGossip('MESSAGE_AVAILABLE', one)), one)
    }),
  )
  const unknown = { queue: 'q', partition: null, group: null, count: 1 }
  t.same(fromGossip(toGossip('PARTITION_FREE', unknown)), { ...unknown, count: 0 })
  t.end()
})

test('that options have changed is for every node, whatever it waits for, and counts nothing', (t) => {
  fc.assert(
    fc.property(hint, (one) => {
      const outgoing = toGossip('QUEUE_CONFIG_CHANGED', one)
      t.match(outgoing, { kind: 'QUEUE_CONFIG_CHANGED', scope: one.queue, keys: undefined })
      t.same(fromGossip(outgoing), { ...one, count: 0 })
    }),
  )
  t.end()
})

test('whoever may wait for a hint is among those who get it', (t) => {
  fc.assert(
    fc.property(hint, fc.boolean(), fc.boolean(), (one, byNamespace, byTask) => {
      const keys = keysOf(one)
      const sources = [
        { queue: one.queue },
        { queue: one.queue, partition: one.partition ?? 'p' },
        {
          namespace: byNamespace ? (one.namespace ?? undefined) : undefined,
          task: byTask ? (one.task ?? undefined) : undefined,
        },
      ]
      for (const source of sources) t.ok(keys?.includes(interestKey({ source, group: 'g' })))
    }),
  )
  t.end()
})

test('names cannot be made to look like others', (t) => {
  const keys = keysOf({ queue: 'q', namespace: 'a', task: 'b' }) ?? []
  for (const source of [
    { queue: 'other' },
    { namespace: 'other', task: 'b' },
    { namespace: 'a/task/b' },
    { namespace: 'x', task: '*' },
  ]) {
    t.notOk(keys.includes(interestKey({ source, group: 'g' })), JSON.stringify(source))
  }
  t.end()
})

test('where the place is not known, or half of it, everybody gets the hint and nobody reads one into it', (t) => {
  for (const place of [
    {},
    { namespace: 'a' },
    { task: 'b' },
    { namespace: null },
    { task: null },
  ]) {
    const one = { queue: 'q', partition: null, group: null, ...place, count: 1 }
    t.equal(keysOf(one), undefined, JSON.stringify(place))
    const arrived = fromGossip(toGossip('MESSAGE_AVAILABLE', one))
    t.same(arrived, { queue: 'q', partition: null, group: null, count: 1 }, JSON.stringify(place))
  }
  t.end()
})

test('a hint that lost its labels on the way counts nothing: it may be of lanes, which nobody counted', (t) => {
  const arrived = fromGossip({ kind: 'MESSAGE_AVAILABLE', scope: 'q', count: 89 })
  t.same(arrived, { queue: 'q', partition: null, group: null, count: 0 })
  t.end()
})
