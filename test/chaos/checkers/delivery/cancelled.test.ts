import { test } from 'tap'
import { Story } from '../../support/story.ts'
import { cancelledAndDelivered } from './cancelled.ts'
import { dedup } from './dedup.ts'
import { lost } from './lost.ts'

test('cancelled: a message that is delivered after its cancellation', async (t) => {
  const story = new Story().push('a', { at: 0 }).cancel('a', { at: 10 })
  story.pop('a', { at: 20 })
  t.match(cancelledAndDelivered(story.history()).violations, [
    { what: 'a of jobs was delivered after it was cancelled' },
  ])
})

test('cancelled: a message that was completed and then cancelled', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.ack(story.pop('a', { at: 10 }), { at: 20 })
  story.cancel('a', { at: 30 })
  t.match(cancelledAndDelivered(story.history()).violations, [
    { what: 'a of jobs was completed and cancelled' },
  ])
})

test('cancelled: a failed delivery before, a refused or unanswered call is no violation', async (t) => {
  const failed = new Story().push('a', { at: 0 })
  failed.ack(failed.pop('a', { at: 10 }), { at: 20, status: 'failed' })
  t.equal(cancelledAndDelivered(failed.cancel('a', { at: 30 }).history()).count, 0)
  for (const outcome of ['fail', 'unknown'] as const) {
    const story = new Story().push('a', { at: 0 }).cancel('a', { at: 10, outcome })
    story.ack(story.pop('a', { at: 20 }), { at: 30 })
    t.equal(cancelledAndDelivered(story.history()).count, 0, outcome)
  }
})

test('lost: a message that was or may be cancelled is not lost, one with a refused cancel is', async (t) => {
  const ended = (outcome: 'ok' | 'unknown' | 'fail') =>
    lost(new Story().push('a', { at: 0 }).cancel('a', { at: 10, outcome }).history()).count
  t.same([ended('ok'), ended('unknown'), ended('fail')], [0, 0, 1])
})

test('dedup: an attempt that is stored after its repeat was cancelled is found', async (t) => {
  const story = new Story().push('a', { at: 0, key: 'k', outcome: 'unknown' })
  story.push('a', { at: 10, key: 'k' }).cancel('a', { at: 20 })
  t.equal(dedup(story.history()).count, 0)
  story.pop('a', { at: 30, id: 'id of the first attempt' })
  t.match(dedup(story.history()).violations, [{ what: 'a has 2 ids for one key' }])
})
