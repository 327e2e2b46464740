import { test } from 'tap'
import { Story } from '../../support/story.ts'
import { duplicates } from './duplicates.ts'
import { ghostsOf } from './ghosts.ts'
import { lost } from './lost.ts'
import { nothingDelivered } from './nothing-delivered.ts'
import { unexpected } from './unexpected.ts'

test('lost: a message that was pushed, delivered and completed is not', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.ack(story.pop('a', { at: 10 }), { at: 20 })
  t.equal(lost(story.history()).count, 0)
})

test('lost: one that nobody was handed is', async (t) => {
  const story = new Story().push(['a', 'b'], { at: 0 })
  story.ack(story.pop('a', { at: 10 }), { at: 20 })
  t.match(lost(story.history()).violations, [{ what: 'b of jobs was never delivered to g' }])
})

test('lost: one that one of two groups did not get is', async (t) => {
  const story = new Story().queue({ groups: ['g', 'h'] }).push('a', { at: 0 })
  story.ack(story.pop('a', { at: 10 }), { at: 20 })
  t.equal(lost(story.history()).count, 1)
})

test('lost: one whose push is unknown, was refused, or is still in the queue is not', async (t) => {
  const story = new Story()
    .push('a', { at: 0, outcome: 'unknown' })
    .push('b', { at: 5, outcome: 'fail' })
  t.equal(lost(story.history()).count, 0)
  const left = new Story().push('c', { at: 10 })
  left.audit({ undrained: [{ queue: 'jobs', group: 'g', left: 1 }] })
  t.equal(lost(left.history()).count, 0)
})

test('lost: one that was delivered, never ended and never came again is', async (t) => {
  const refused = new Story().push('a', { at: 0 })
  refused.ack(refused.pop('a', { at: 10 }), { at: 20, success: false })
  t.equal(lost(refused.history()).count, 1)
  const failed = new Story().push('a', { at: 0 })
  failed.ack(failed.pop('a', { at: 10 }), { at: 20, status: 'failed' })
  t.equal(lost(failed.history()).count, 1)
})

test('lost: one that died, or whose ack nobody heard of, is not', async (t) => {
  const dead = new Story().push('a', { at: 0 })
  dead.pop('a', { at: 10 })
  dead.audit({ deadLetters: [{ queue: 'jobs', group: 'g', value: 'a', attempts: 4 }] })
  t.equal(lost(dead.history()).count, 0)
  const unheard = new Story().push('a', { at: 0 })
  unheard.ack(unheard.pop('a', { at: 10 }), { at: 20, outcome: 'unknown' })
  t.equal(lost(unheard.history()).count, 0)
})

test('lost: what a committed transaction pushed counts, too', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.transaction(story.pop('a', { at: 10 }), [{ value: 'b' }], { at: 20 })
  t.match(lost(story.history()).violations, [{ what: 'b of jobs was never delivered to g' }])
})

test('ghosts: a delivery that a failover undid counts for nothing', async (t) => {
  const told = (forgetsLeases: boolean): Story => {
    const story = new Story().push('a', { at: 0, took: 500, outcome: 'unknown' })
    story.pop('a', { at: 100 })
    return story.fault(200, 900, { name: 'failover', forgetsLeases })
  }
  t.equal(lost(told(true).history()).count, 0)
  t.equal(lost(told(false).history()).count, 1)
  const kept = told(true)
  kept.ack(kept.pop('a', { at: 5_000, attempt: 1 }), { at: 5_010 })
  const history = kept.history()
  t.equal(ghostsOf(history, history.message(0)).size, 0, 'one that is still there is none')
})

test('unexpected: values that nobody pushed, or only in vain', async (t) => {
  const story = new Story().push('a', { at: 0 }).push('b', { at: 5, outcome: 'fail' })
  story.pop(['a', 'b', 'c'], { at: 10 })
  t.match(unexpected(story.history()).violations, [
    { what: 'b of jobs was delivered, and every push of it was refused' },
    { what: 'c of jobs was delivered, and nobody pushed it' },
  ])
})

test('unexpected: a message from a push of unknown outcome is expected', async (t) => {
  const story = new Story().push('a', { at: 0, outcome: 'unknown' })
  story.pop('a', { at: 10 })
  t.equal(unexpected(story.history()).count, 0)
})

test('unexpected: another partition, or before the push', async (t) => {
  const elsewhere = new Story().push('a', { at: 0 })
  elsewhere.pop('a', { at: 10, partition: 'q' })
  t.equal(unexpected(elsewhere.history()).count, 1)
  const before = new Story().push('a', { at: 100 })
  before.pop('a', { at: 10 })
  t.equal(unexpected(before.history()).count, 1)
})

test('duplicates: each reason of promise 7 explains one', async (t) => {
  const expired = new Story().push('a', { at: 0 })
  expired.pop('a', { at: 10 })
  expired.pop('a', { at: 4_000 })
  const released = new Story().push('a', { at: 0 })
  released.release(released.pop('a', { at: 10 }), { at: 20 })
  released.pop('a', { at: 30, attempt: 1 })
  const nacked = new Story().push('a', { at: 0 })
  nacked.ack(nacked.pop('a', { at: 10 }), { at: 20, status: 'failed' })
  nacked.pop('a', { at: 30 })
  const unheard = new Story().push('a', { at: 0 })
  unheard.ack(unheard.pop('a', { at: 10 }), { at: 20, outcome: 'unknown' })
  unheard.pop('a', { at: 4_000 })
  const forgotten = new Story().push('a', { at: 0 })
  forgotten.pop('a', { at: 10 })
  forgotten.fault(20, 500, { name: 'postgres-kill', forgetsLeases: true })
  forgotten.pop('a', { at: 600, attempt: 1 })
  for (const story of [expired, released, nacked, unheard, forgotten]) {
    const { count, unexplained } = duplicates(story.history())
    t.equal(count, 1)
    t.equal(unexplained.count, 0)
  }
})

test('duplicates: before its lease can have run out there is no reason', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.pop('a', { at: 10 })
  story.fault(20, 500)
  story.pop('a', { at: 1_000 })
  t.equal(duplicates(story.history()).unexplained.count, 1)
})

test('duplicates: an extension that was granted puts the reason off', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.extend(story.pop('a', { at: 10 }), 10, { at: 2_000 })
  story.pop('a', { at: 5_000 })
  t.equal(duplicates(story.history()).unexplained.count, 1)
})

test('duplicates: what was completed never comes again, not even after a crash', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.ack(story.pop('a', { at: 10 }), { at: 20 })
  story.fault(100, 500, { forgetsLeases: true })
  story.pop('a', { at: 5_000 })
  t.equal(duplicates(story.history()).unexplained.count, 1)
})

test('duplicates: a long poll that was open before the first delivery is no alibi', async (t) => {
  const story = new Story().push('a', { at: 1_000 })
  story.ack(story.pop('a', { at: 1_010 }), { at: 1_020 })
  story.pop('a', { at: 0, took: 4_500, waitMs: 30_000 })
  t.equal(duplicates(story.history()).unexplained.count, 1, 'the attempt tells the order')
})

test('duplicates: a value pushed again without a key may be there twice, not three times', async (t) => {
  const told = (ids: readonly string[]): Story => {
    const story = new Story()
      .push('a', { at: 0, outcome: 'unknown' })
      .push('a', { at: 10, id: 'x' })
    ids.forEach((id, i) => {
      story.ack(story.pop('a', { at: 20 + i * 10, id, attempt: 1 }), { at: 25 + i * 10 })
    })
    return story
  }
  t.equal(duplicates(told(['x', 'y']).history()).unexplained.count, 0)
  t.equal(duplicates(told(['x', 'y', 'z']).history()).unexplained.count, 1)
})

test('a run that delivered nothing has failed', async (t) => {
  t.equal(nothingDelivered(new Story().history()).count, 2)
  const story = new Story().queue({ queue: 'other' }).push('a', { at: 0 })
  story.pop('a', { at: 10 })
  t.match(nothingDelivered(story.history()).violations, [
    { what: 'nothing of other was delivered' },
  ])
})
