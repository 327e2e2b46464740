// How purges, seeks, redrives and subscriptions change what the rules expect.
import { test } from 'tap'
import { leaseMs, Story } from '../../support/story.ts'
import { attempts } from '../leases/attempts.ts'
import { laneLeases } from '../leases/lane-leases.ts'
import { overlappingLeases } from '../leases/overlapping-leases.ts'
import { order } from '../order/order.ts'
import { deadLetters } from './dead-letters.ts'
import { dedup } from './dedup.ts'
import { duplicates } from './duplicates.ts'
import { lost } from './lost.ts'
import { unexpected } from './unexpected.ts'

test('lost: a message that a purge may have removed is not lost, one pushed after it is', async (t) => {
  const story = new Story().push('a', { at: 0 }).operation('purge', { at: 10 })
  t.equal(lost(story.history()).count, 0)
  const refused = new Story().push('a', { at: 0 }).operation('purge', { at: 10, outcome: 'fail' })
  t.equal(lost(refused.history()).count, 1)
  const later = new Story().operation('purge', { at: 0 }).push('a', { at: 10 })
  t.equal(lost(later.history()).count, 1)
  const other = new Story().operation('purge', { at: 10, queue: 'others' }).push('a', { at: 0 })
  t.equal(lost(other.history()).count, 1)
})

test('lost: a message delivered after the purge and not acknowledged is lost', async (t) => {
  const story = new Story().push('a', { at: 0, took: 20 }).operation('purge', { at: 10 })
  story.pop('a', { at: 30 })
  t.equal(lost(story.history()).count, 1)
  const before = new Story().push('a', { at: 0 })
  before.pop('a', { at: 5 })
  before.operation('purge', { at: 10 })
  t.equal(lost(before.history()).count, 0)
})

test('unexpected: a message that a purge must have removed', async (t) => {
  const story = new Story().push('a', { at: 0 }).operation('purge', { at: 10 })
  story.pop('a', { at: 20 })
  t.match(unexpected(story.history()).violations, [
    { what: 'a of jobs was delivered after a purge that must have removed it' },
  ])
})

test('unexpected: a push in progress during the purge, or a purge without a response, is no violation', async (t) => {
  const under = new Story().push('a', { at: 0, took: 20 }).operation('purge', { at: 10 })
  under.pop('a', { at: 30 })
  t.equal(unexpected(under.history()).count, 0)
  const unanswered = new Story().push('a', { at: 0 })
  unanswered.operation('purge', { at: 10, outcome: 'unknown' }).pop('a', { at: 20 })
  t.equal(unexpected(unanswered.history()).count, 0)
})

test('a purge frees lanes and keys', async (t) => {
  const story = new Story().push('a', { at: 0, key: 'k' })
  story.pop('a', { at: 10 })
  story.operation('purge', { at: 20 }).push('b', { at: 30 })
  story.pop('b', { at: 40 })
  t.equal(laneLeases(story.history()).count, 0)
  t.equal(order(story.history()).count, 0)
  const kept = new Story().push(['a', 'b'], { at: 0 })
  kept.pop('a', { at: 10 })
  kept.pop('b', { at: 40 })
  t.equal(laneLeases(kept.history()).count, 1)
  t.equal(order(kept.history()).count, 1)

  const again = new Story().push('a', { at: 0, key: 'k' })
  again.operation('purge', { at: 10 }).push('a', { at: 20, key: 'k', id: 'another' })
  t.equal(dedup(again.history()).count, 0)
})

test('lost: a message that a seek skipped is not lost for the group it moved', async (t) => {
  const story = new Story().queue({ groups: ['g', 'h'] }).push('a', { at: 0 })
  story.operation('seek', { at: 10, group: 'g', from: 'new' })
  t.match(lost(story.history()).violations, [{ what: 'a of jobs was never delivered to h' }])
})

test('after a seek back completed messages are delivered again, and attempts count from one', async (t) => {
  const story = new Story().push('a', { at: 1_000 })
  story.ack(story.pop('a', { at: 1_010 }), { at: 1_020 })
  story.operation('seek', { at: 1_030, group: 'g', from: 0 })
  story.ack(story.pop('a', { at: 1_040, attempt: 1 }), { at: 1_050 })
  const history = story.history()
  t.equal(duplicates(history).unexplained.count, 0)
  t.equal(attempts(history).count, 0)
  t.equal(overlappingLeases(history).count, 0)
  t.equal(lost(history).count, 0)
  const without = new Story().push('a', { at: 1_000 })
  without.ack(without.pop('a', { at: 1_010 }), { at: 1_020 })
  without.ack(without.pop('a', { at: 1_040, attempt: 1 }), { at: 1_050 })
  t.equal(duplicates(without.history()).unexplained.count, 1)
  t.equal(attempts(without.history()).count, 1)
})

test('lost: a message that the last seek went back over and that was not delivered again', async (t) => {
  const story = new Story().push('a', { at: 1_000 })
  story.ack(story.pop('a', { at: 1_010 }), { at: 1_020 })
  story.operation('seek', { at: 1_030, group: 'g', from: 500 })
  t.match(lost(story.history()).violations, [
    { what: 'a of jobs was not delivered again to g after a seek back' },
  ])
  story.operation('seek', { at: 1_040, group: 'g', from: 'new' })
  t.equal(lost(story.history()).count, 0)
})

test('order: messages that a group skipped may come later, after a seek back', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.operation('seek', { at: 10, group: 'g', from: 'new' }).push('b', { at: 20 })
  story.ack(story.pop('b', { at: 30 }), { at: 40 })
  story.operation('seek', { at: 50, group: 'g', from: 0 })
  story.ack(story.pop('a', { at: 60 }), { at: 70 })
  t.equal(order(story.history()).count, 0)
})

test('a redriven message is no dead letter any more, and its attempts count from one', async (t) => {
  const story = givenUp()
  story.operation('redrive', { at: 5_000 })
  story.ack(story.pop('a', { at: 5_010, attempt: 1 }), { at: 5_020 })
  const history = story.history()
  t.equal(lost(history).count, 0)
  t.equal(attempts(history).count, 0)
  t.equal(deadLetters(history).count, 0)
  t.equal(duplicates(history).unexplained.count, 0)
  const without = givenUp()
  without.ack(without.pop('a', { at: 5_010, attempt: 1 }), { at: 5_020 })
  t.equal(attempts(without.history()).count, 1)
  t.equal(deadLetters(without.history()).count, 1)
})

test('lost: a redriven message that was not delivered, or released and not delivered again', async (t) => {
  const never = givenUp().operation('redrive', { at: 5_000 })
  t.equal(lost(never.history()).count, 1)
  const givenBack = givenUp().operation('redrive', { at: 5_000 })
  givenBack.release(givenBack.pop('a', { at: 5_010, attempt: 1 }), { at: 5_020 })
  t.equal(lost(givenBack.history()).count, 1)
  const left = givenUp().operation('redrive', { at: 5_000 })
  left.audit({ deadLetters: [{ queue: 'jobs', group: 'g', value: 'a', attempts: 4 }] })
  t.equal(lost(left.history()).count, 0)
})

test('a new group gets the messages of its subscription', async (t) => {
  const begun = (from: 'all' | 'new' | number): Story =>
    new Story()
      .queue({ groups: [] })
      .push('early', { at: 0 })
      .push('recent', { at: 1_000 })
      .operation('subscribe', { at: 2_000, group: 'n', from })
      .push('late', { at: 3_000 })
  const missed = (story: Story): string[] =>
    lost(story.history()).violations.map(({ what }) => what.split(' ')[0] ?? '')
  t.same(missed(begun('all')), ['early', 'recent', 'late'])
  t.same(missed(begun(500)), ['recent', 'late'])
  t.same(missed(begun('new')), ['late'])
})

test('unexpected: a message from before the subscription of the group', async (t) => {
  const got = (value: string, from: 'new' | number): number => {
    const story = new Story().queue({ groups: [] }).push('early', { at: 0 })
    story.push('recent', { at: 1_000 }).operation('subscribe', { at: 2_000, group: 'n', from })
    story.pop(value, { at: 3_000, group: 'n' })
    return unexpected(story.history()).count
  }
  t.equal(got('early', 'new'), 1)
  t.equal(got('recent', 'new'), 1)
  t.equal(got('early', 500), 1)
  t.equal(got('recent', 500), 0)
})

test('lost: a message that retention may have removed is not lost, one skipped while young is', async (t) => {
  const queue = { retentionMs: leaseMs }
  const old = new Story().queue(queue).push('a', { at: 0 }).push('b', { at: 4_000 })
  old.ack(old.pop('b', { at: 4_010 }), { at: 4_020 })
  t.equal(lost(old.history()).count, 0)
  const young = new Story().queue(queue).push('a', { at: 0 }).push('b', { at: 10 })
  young.ack(young.pop('b', { at: 20 }), { at: 30 })
  t.match(lost(young.history()).violations, [{ what: 'a of jobs was never delivered to g' }])
})

/** A message that fails four times, the last time at 420 ms. */
function givenUp(): Story {
  const story = new Story().push('a', { at: 0 })
  for (const at of [100, 200, 300, 400]) {
    story.ack(story.pop('a', { at }), { at: at + 20, status: 'failed' })
  }
  return story
}
