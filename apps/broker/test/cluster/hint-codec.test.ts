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

test('a decoded hint equals the encoded one', (t) => {
  fc.assert(
    fc.property(hint, (one) => {
      t.same(fromGossip(toGossip('MESSAGE_AVAILABLE', one)), one)
    }),
  )
  const unknown = { queue: 'q', partition: null, group: null, count: 1 }
  t.same(fromGossip(toGossip('PARTITION_FREE', unknown)), { ...unknown, count: 0 })
  t.end()
})

test('a hint about changed options goes to every node and has no count', (t) => {
  fc.assert(
    fc.property(hint, (one) => {
      const outgoing = toGossip('QUEUE_CONFIG_CHANGED', one)
      t.match(outgoing, { kind: 'QUEUE_CONFIG_CHANGED', scope: one.queue, keys: undefined })
      t.same(fromGossip(outgoing), { ...one, count: 0 })
    }),
  )
  t.end()
})

test('the keys of a hint cover every wait group that it can wake', (t) => {
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

test('no name can be chosen so that its key equals that of another name', (t) => {
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

test('a hint without a complete namespace and task goes to every node, and is decoded without them', (t) => {
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

test('a hint without labels is decoded with count 0, because it may be about lanes, which are not counted', (t) => {
  const arrived = fromGossip({ kind: 'MESSAGE_AVAILABLE', scope: 'q', count: 89 })
  t.same(arrived, { queue: 'q', partition: null, group: null, count: 0 })
  t.end()
})

test('an unknown number of messages stays unknown', (t) => {
  const unknown = { queue: 'q', partition: null, group: null, namespace: null, task: null }
  t.same(fromGossip(toGossip('MESSAGE_AVAILABLE', unknown)), { ...unknown, count: 0 })
  t.end()
})
