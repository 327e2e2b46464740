import { test } from 'tap'
import { Story } from '../../support/story.ts'
import { duplicates } from './duplicates.ts'
import { ghostsOf } from './ghosts.ts'
import { lost } from './lost.ts'
import { nothingDelivered } from './nothing-delivered.ts'
import { unexpected } from './unexpected.ts'
import { unique } from './unique.ts'

test('lost: a message that was pushed, delivered and completed is not lost', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.ack(story.pop('a', { at: 10 }), { at: 20 })
  t.equal(lost(story.history()).count, 0)
})

test('lost: a message that was never delivered is lost', async (t) => {
  const story = new Story().push(['a', 'b'], { at: 0 })
  story.ack(story.pop('a', { at: 10 }), { at: 20 })
  t.match(lost(story.history()).violations, [{ what: 'b of jobs was never delivered to g' }])
})

test('lost: a message that one of two groups did not get is lost', async (t) => {
  const story = new Story().queue({ groups: ['g', 'h'] }).push('a', { at: 0 })
  story.ack(story.pop('a', { at: 10 }), { at: 20 })
  t.equal(lost(story.history()).count, 1)
})

test('lost: a message is not lost if its push is unknown or refused, or if it is still in the queue', async (t) => {
  const story = new Story()
    .push('a', { at: 0, outcome: 'unknown' })
    .push('b', { at: 5, outcome: 'fail' })
  t.equal(lost(story.history()).count, 0)
  const left = new Story().push('c', { at: 10 })
  left.audit({ undrained: [{ queue: 'jobs', group: 'g', left: 1 }] })
  t.equal(lost(left.history()).count, 0)
})

test('lost: a message that was delivered, not acknowledged and not delivered again is lost', async (t) => {
  const refused = new Story().push('a', { at: 0 })
  refused.ack(refused.pop('a', { at: 10 }), { at: 20, success: false })
  t.equal(lost(refused.history()).count, 1)
  const failed = new Story().push('a', { at: 0 })
  failed.ack(failed.pop('a', { at: 10 }), { at: 20, status: 'failed' })
  t.equal(lost(failed.history()).count, 1)
})

test('lost: a dead letter, or a message whose ack has no response, is not lost', async (t) => {
  const dead = new Story().push('a', { at: 0 })
  dead.pop('a', { at: 10 })
  dead.audit({ deadLetters: [{ queue: 'jobs', group: 'g', value: 'a', attempts: 4 }] })
  t.equal(lost(dead.history()).count, 0)
  const unanswered = new Story().push('a', { at: 0 })
  unanswered.ack(unanswered.pop('a', { at: 10 }), { at: 20, outcome: 'unknown' })
  t.equal(lost(unanswered.history()).count, 0)
})

test('lost: messages pushed by a committed transaction are checked, too', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.transaction(story.pop('a', { at: 10 }), [{ value: 'b' }], { at: 20 })
  t.match(lost(story.history()).violations, [{ what: 'b of jobs was never delivered to g' }])
})

test('ghosts: a delivery that a failover undid does not count', async (t) => {
  const storyWith = (forgetsLeases: boolean): Story => {
    const story = new Story().push('a', { at: 0, took: 500, outcome: 'unknown' })
    story.pop('a', { at: 100 })
    return story.fault(200, 900, { name: 'failover', forgetsLeases })
  }
  t.equal(lost(storyWith(true).history()).count, 0)
  t.equal(lost(storyWith(false).history()).count, 1)
  const kept = storyWith(true)
  kept.ack(kept.pop('a', { at: 5_000, attempt: 1 }), { at: 5_010 })
  const history = kept.history()
  t.equal(
    ghostsOf(history, history.message(0)).size,
    0,
    'a message that is still there is not a ghost',
  )
})

test('unexpected: a value that was never pushed, or whose pushes were all refused', async (t) => {
  const story = new Story().push('a', { at: 0 }).push('b', { at: 5, outcome: 'fail' })
  story.pop(['a', 'b', 'c'], { at: 10 })
  t.match(unexpected(story.history()).violations, [
    { what: 'b of jobs was delivered, but every push of it was refused' },
    { what: 'c of jobs was delivered, but never pushed' },
  ])
})

test('unexpected: a message from a push of unknown outcome is expected', async (t) => {
  const story = new Story().push('a', { at: 0, outcome: 'unknown' })
  story.pop('a', { at: 10 })
  t.equal(unexpected(story.history()).count, 0)
})

test('unexpected: a delivery from another partition, or before the push', async (t) => {
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
  const unanswered = new Story().push('a', { at: 0 })
  unanswered.ack(unanswered.pop('a', { at: 10 }), { at: 20, outcome: 'unknown' })
  unanswered.pop('a', { at: 4_000 })
  const forgotten = new Story().push('a', { at: 0 })
  forgotten.pop('a', { at: 10 })
  forgotten.fault(20, 500, { name: 'postgres-kill', forgetsLeases: true })
  forgotten.pop('a', { at: 600, attempt: 1 })
  for (const story of [expired, released, nacked, unanswered, forgotten]) {
    const { count, unexplained } = duplicates(story.history())
    t.equal(count, 1)
    t.equal(unexplained.count, 0)
  }
})

test('duplicates: before the lease can have expired there is no reason', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.pop('a', { at: 10 })
  story.fault(20, 500)
  story.pop('a', { at: 1_000 })
  t.equal(duplicates(story.history()).unexplained.count, 1)
})

test('duplicates: a granted extension moves the expiry', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.extend(story.pop('a', { at: 10 }), 10, { at: 2_000 })
  story.pop('a', { at: 5_000 })
  t.equal(duplicates(story.history()).unexplained.count, 1)
})

test('duplicates: a completed message is never delivered again, not even after a crash', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.ack(story.pop('a', { at: 10 }), { at: 20 })
  story.fault(100, 500, { forgetsLeases: true })
  story.pop('a', { at: 5_000 })
  t.equal(duplicates(story.history()).unexplained.count, 1)
})

test('duplicates: a long poll that was open before the first delivery does not hide a duplicate', async (t) => {
  const story = new Story().push('a', { at: 1_000 })
  story.ack(story.pop('a', { at: 1_010 }), { at: 1_020 })
  story.pop('a', { at: 0, took: 4_500, waitMs: 30_000 })
  t.equal(duplicates(story.history()).unexplained.count, 1, 'the attempts show the order')
})

test('duplicates: a value pushed twice without a key may be delivered twice, not three times', async (t) => {
  const storyWith = (ids: readonly string[]): Story => {
    const story = new Story()
      .push('a', { at: 0, outcome: 'unknown' })
      .push('a', { at: 10, id: 'x' })
    ids.forEach((id, i) => {
      story.ack(story.pop('a', { at: 20 + i * 10, id, attempt: 1 }), { at: 25 + i * 10 })
    })
    return story
  }
  t.equal(duplicates(storyWith(['x', 'y']).history()).unexplained.count, 0)
  t.equal(duplicates(storyWith(['x', 'y', 'z']).history()).unexplained.count, 1)
})

test('nothing delivered: a run without deliveries fails', async (t) => {
  t.equal(nothingDelivered(new Story().history()).count, 2)
  const story = new Story().queue({ queue: 'other' }).push('a', { at: 0 })
  story.pop('a', { at: 10 })
  t.match(nothingDelivered(story.history()).violations, [
    { what: 'no message of other was delivered' },
  ])
})

test('unique: messages that have a key one after the other, or another key, are right', async (t) => {
  const story = new Story().queue({ hasUniqueKeys: true }).push('a@k', { at: 0 })
  story.push('b@k', { at: 5, status: 'duplicate', id: 'id a@k' })
  story.push('c@l', { at: 6 })
  story.ack(story.pop('a@k', { at: 10 }), { at: 20 })
  story.push('d@k', { at: 21 })
  story.ack(story.pop(['c@l', 'd@k'], { at: 30 }), { at: 40 })
  t.same(unique(story.history()).violations, [])
  t.equal(lost(story.history()).count, 0, 'a duplicate is not lost')
})

test('unique: two messages with one key at the same time, and a duplicate of nothing, are wrong', async (t) => {
  const story = new Story().queue({ hasUniqueKeys: true }).push(['a@k', 'b@k'], { at: 0 })
  story.ack(story.pop(['a@k', 'b@k'], { at: 10 }), { at: 20 })
  story.push('c@k', { at: 30, status: 'duplicate', id: 'nowhere' })
  t.match(unique(story.history()).violations, [
    { what: 'a@k and b@k had the unique key ["jobs","k"] at the same time' },
    { what: 'c@k is a duplicate of a message that was never stored' },
  ])
})
