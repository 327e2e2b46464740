import { test } from 'tap'
import { Story } from '../../support/story.ts'
import { order } from './order.ts'
import { pushOrder } from './push-order.ts'

test('order: messages in the order of the log are correct', async (t) => {
  const story = new Story().push(['a', 'b', 'c'], { at: 0 })
  story.ack(story.pop(['a', 'b'], { at: 10 }), { at: 20 })
  story.ack(story.pop('c', { at: 30 }), { at: 40 })
  t.equal(order(story.history()).count, 0)
})

test('order: a wrong order within one response is found', async (t) => {
  const story = new Story().push(['a', 'b'], { at: 0 })
  story.ack(story.pop(['b', 'a'], { at: 10 }), { at: 20 })
  t.match(order(story.history()).violations, [{ what: 'in p, g got seq 2 before 1' }])
})

test('order: a wrong order between responses is found', async (t) => {
  const story = new Story().push(['a', 'b'], { at: 0 })
  story.ack(story.pop('b', { at: 10 }), { at: 20 })
  story.ack(story.pop('a', { at: 30 }), { at: 40 })
  t.match(order(story.history()).violations, [{ what: 'in p, g got seq 2 before 1' }])
})

test('order: concurrent responses have no order', async (t) => {
  const story = new Story().push(['a', 'b'], { at: 0 })
  story.ack(story.pop('b', { at: 510, took: 20 }), { at: 540 })
  story.ack(story.pop('a', { at: 505, took: 40 }), { at: 530 })
  t.equal(order(story.history()).count, 0)
})

test('order: a message that was cancelled after its lease had expired does not hold up the next one', async (t) => {
  for (const [at, count] of [
    [3_500, 0],
    [1_000, 1],
  ] as const) {
    const story = new Story().push(['a', 'b'], { at: 0 })
    story.pop('a', { at: 10 })
    story.cancel('a', { at: at - 100 })
    story.ack(story.pop('b', { at }), { at: at + 10 })
    t.equal(order(story.history()).count, count, `next one at ${at}, lease of 3,000 ms`)
  }
})

test('order: redeliveries come late and are not first attempts', async (t) => {
  const story = new Story().push(['a', 'b'], { at: 0 })
  const [a, b] = story.pop(['a', 'b'], { at: 10 })
  if (a === undefined || b === undefined) return t.fail('two were popped')
  story.ack([b], { at: 20 }).ack([a], { at: 21, status: 'retry' })
  story.ack(story.pop('a', { at: 30, attempt: 1 }), { at: 40 })
  t.equal(order(story.history()).count, 0)
})

test('order: queues without order, and deliveries that a failover undid, are excused', async (t) => {
  const loose = new Story().queue({ ordering: 'none' }).push(['a', 'b'], { at: 0 })
  loose.pop('b', { at: 10 })
  loose.pop('a', { at: 30 })
  t.equal(order(loose.history()).count, 0)
  // A wait for the standby was cancelled, and the standby never had x and y, so their seqs were used again.
  const undone = new Story().push(['x', 'y'], { at: 0, outcome: 'unknown' })
  undone.ack(undone.pop('x', { at: 10, seq: 1 }), { at: 15, outcome: 'unknown' })
  undone.pop('y', { at: 20, seq: 2 })
  undone.fault(30, 900, { name: 'failover', forgetsLeases: true }).push('z', { at: 1_000 })
  undone.ack(undone.pop('z', { at: 1_010, seq: 1 }), { at: 1_020 })
  t.equal(order(undone.history()).count, 0)
})

test('order: a failed message holds its lane', async (t) => {
  const storyWith = (passesBy: boolean): Story => {
    const story = new Story().push(['a', 'b'], { at: 0 })
    story.ack(story.pop('a', { at: 10 }), { at: 20, status: 'failed' })
    if (passesBy) story.ack(story.pop('b', { at: 30 }), { at: 40 })
    story.ack(story.pop('a', { at: 50 }), { at: 60 })
    if (!passesBy) story.ack(story.pop('b', { at: 70 }), { at: 80 })
    return story
  }
  t.equal(order(storyWith(false).history()).count, 0)
  t.match(order(storyWith(true).history()).violations, [
    { what: 'in p, g got seq 2 while 1 had not ended' },
  ])
})

test('order: a dead letter, at the limit or at once, no longer holds its lane', async (t) => {
  const atOnce = new Story().push(['a', 'b'], { at: 0 })
  atOnce.ack(atOnce.pop('a', { at: 10 }), { at: 20, status: 'dlq' })
  atOnce.pop('b', { at: 30 })
  t.equal(order(atOnce.history()).count, 0)
  const atLimit = new Story().queue({ retryLimit: 0 }).push(['a', 'b'], { at: 0 })
  atLimit.ack(atLimit.pop('a', { at: 10 }), { at: 20, status: 'failed' })
  atLimit.pop('b', { at: 30 })
  t.equal(order(atLimit.history()).count, 0)
})

test('order: a message holds its lane until it becomes a dead letter', async (t) => {
  const storyWith = (overtakes: boolean): Story => {
    const story = new Story().queue({ retryLimit: 1 }).push(['a', 'b'], { at: 0 })
    story.ack(story.pop('a', { at: 10 }), { at: 20, status: 'failed' })
    if (overtakes) story.ack(story.pop('b', { at: 30 }), { at: 40 })
    story.ack(story.pop('a', { at: 50 }), { at: 60, status: 'failed' })
    if (!overtakes) story.ack(story.pop('b', { at: 70 }), { at: 80 })
    return story.audit({
      deadLetters: [{ queue: 'jobs', group: 'g', value: 'a', attempts: 2 }],
    })
  }
  t.equal(order(storyWith(false).history()).count, 0)
  t.equal(order(storyWith(true).history()).count, 1)
})

test('push order: the log follows the order of pushes', async (t) => {
  const storyWith = (seqs: readonly [number, number]): Story => {
    const story = new Story().push('a', { at: 0 }).push('b', { at: 10, process: 'other' })
    story.pop('a', { at: 20, seq: seqs[0] })
    story.pop('b', { at: 30, seq: seqs[1] })
    return story
  }
  t.equal(pushOrder(storyWith([1, 2]).history()).count, 0)
  t.equal(pushOrder(storyWith([2, 1]).history()).count, 1)
})

test('push order: concurrent pushes may be stored in any order', async (t) => {
  const story = new Story().push('a', { at: 0, took: 20 }).push('b', { at: 10 })
  story.pop('a', { at: 30, seq: 2 })
  story.pop('b', { at: 40, seq: 1 })
  t.equal(pushOrder(story.history()).count, 0)
})

test('push order: the items of one push, and of one SQL transaction, keep their order', async (t) => {
  for (const by of ['http', 'sql'] as const) {
    const story = new Story().push(['a', 'b'], { at: 0, by })
    story.pop('a', { at: 30, seq: 2 })
    story.pop('b', { at: 40, seq: 1 })
    t.equal(pushOrder(story.history()).count, 1)
  }
})

test('push order: SQL transactions and delayed messages are stored later', async (t) => {
  const story = new Story()
    .push('a', { at: 0, by: 'sql' })
    .push('b', { at: 0, delayMs: 100 })
    .push('c', { at: 10 })
  story.pop('c', { at: 30, seq: 1 })
  story.pop('a', { at: 40, seq: 2 })
  story.pop('b', { at: 140, seq: 3 })
  t.equal(pushOrder(story.history()).count, 0)
})
