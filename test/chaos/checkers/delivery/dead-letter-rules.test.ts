import { test } from 'tap'
import { Story } from '../../support/story.ts'
import { deadLetters } from './dead-letters.ts'
import { dedup } from './dedup.ts'

test('dedup: one key with one id is correct', async (t) => {
  const story = new Story()
    .push('a', { at: 0, key: 'k' })
    .push('a', { at: 10, key: 'k', status: 'duplicate' })
  story.pop('a', { at: 20 })
  t.equal(dedup(story.history()).count, 0)
})

test('dedup: a second id is found in responses and in deliveries', async (t) => {
  const answered = new Story()
    .push('a', { at: 0, key: 'k' })
    .push('a', { at: 10, key: 'k', id: 'other', status: 'duplicate' })
  t.equal(dedup(answered.history()).count, 1)
  const came = new Story()
    .push('a', { at: 0, key: 'k', outcome: 'unknown' })
    .push('a', { at: 10, key: 'k' })
  came.pop('a', { at: 20 })
  came.pop('a', { at: 30, id: 'other' })
  t.equal(dedup(came.history()).count, 1)
})

test('dedup: without a key, or outside the window, a value may be stored twice', async (t) => {
  const loose = new Story().push('a', { at: 0, id: 'x' }).push('a', { at: 10, id: 'y' })
  t.equal(dedup(loose.history()).count, 0)
  const late = new Story()
    .push('a', { at: 0, key: 'k', id: 'x' })
    .push('a', { at: 70_000, key: 'k', id: 'y' })
  t.equal(dedup(late.history()).count, 0)
})

function dead(value: string, attempts: number) {
  return { queue: 'jobs', group: 'g', value, attempts }
}

test('dead letters: a message becomes one after exactly its limit of retries plus one', async (t) => {
  const storyWith = (deliveries: number, letterAttempts: number | undefined): Story => {
    const story = new Story().queue({ retryLimit: 1 }).push('a', { at: 0 })
    for (let i = 0; i < deliveries; i += 1) {
      story.ack(story.pop('a', { at: 10 + i * 10 }), { at: 15 + i * 10, status: 'failed' })
    }
    return story.audit(
      letterAttempts === undefined ? {} : { deadLetters: [dead('a', letterAttempts)] },
    )
  }
  t.equal(deadLetters(storyWith(2, 2).history()).count, 0)
  t.match(deadLetters(storyWith(3, 3).history()).violations, [
    { what: 'a became a dead letter after 3 attempts instead of 2' },
    { what: 'a was delivered as attempt 3 of 2' },
  ])
  t.match(deadLetters(storyWith(1, 1).history()).violations, [
    { what: 'a became a dead letter after 1 attempts instead of 2' },
  ])
  t.match(deadLetters(storyWith(2, undefined).history()).violations, [
    { what: 'a used up its attempts and is not a dead letter' },
  ])
})

test('dead letters: an ack with dlq makes one at once', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.ack(story.pop('a', { at: 10 }), { at: 20, status: 'dlq' })
  t.equal(deadLetters(story.audit({ deadLetters: [dead('a', 1)] }).history()).count, 0)
})

test('dead letters: a completed message, a second dead letter and one that was never pushed are violations', async (t) => {
  const completed = new Story().queue({ retryLimit: 0 }).push('a', { at: 0 })
  completed.ack(completed.pop('a', { at: 10 }), { at: 20 })
  completed.audit({ deadLetters: [dead('a', 1)] })
  t.equal(deadLetters(completed.history()).count, 1)
  const twice = new Story().queue({ retryLimit: 0 }).push('a', { at: 0 })
  twice.ack(twice.pop('a', { at: 10 }), { at: 20, status: 'failed' })
  t.equal(
    deadLetters(twice.audit({ deadLetters: [dead('a', 1), dead('a', 1)] }).history()).count,
    1,
  )
  t.equal(deadLetters(new Story().audit({ deadLetters: [dead('x', 4)] }).history()).count, 1)
})
