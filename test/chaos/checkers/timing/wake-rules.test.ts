import { test } from 'tap'
import { Story } from '../../support/story.ts'
import { delays } from './delays.ts'
import { lateWakes } from './late-wakes.ts'

test('delays: a delivery before the delay is over is a violation', async (t) => {
  const storyWith = (at: number): Story => {
    const story = new Story().push('a', { at: 100, delayMs: 1_000 })
    story.pop('a', { at })
    return story
  }
  t.equal(delays(storyWith(1_100).history()).count, 0)
  t.equal(delays(storyWith(1_000).history()).count, 1)
})

test('delays: they count from the first push that may have stored the message', async (t) => {
  const story = new Story()
    .push('a', { at: 0, delayMs: 1_000, outcome: 'unknown' })
    .push('a', { at: 500, delayMs: 1_000 })
  story.pop('a', { at: 1_000 })
  t.equal(delays(story.history()).count, 0)
})

function woken(came: number, waiter: { at: number; took: number }): Story {
  const story = new Story().queue({ ordering: 'none', wakeMsMax: 1_000 }).push('a', { at: 5_000 })
  story.pop([], { ...waiter, waitMs: waiter.took })
  story.pop('a', { at: came, took: 10 })
  return story
}

test('wakes: a delivery is late only if a pop waited all the time', async (t) => {
  t.equal(lateWakes(woken(5_500, { at: 4_000, took: 1_400 }).history()).count, 0, 'in time')
  t.equal(lateWakes(woken(7_500, { at: 4_000, took: 2_000 }).history()).count, 0, 'no pop waited')
  t.equal(lateWakes(woken(7_500, { at: 4_000, took: 3_000 }).history()).count, 1)
  t.equal(
    lateWakes(woken(9_500, { at: 6_000, took: 2_000 }).history()).count,
    1,
    'the waiter came later and got nothing',
  )
})

test('wakes: a waiter that gets the message too late counts', async (t) => {
  const story = new Story().queue({ ordering: 'none', wakeMsMax: 1_000 }).push('a', { at: 5_000 })
  story.pop('a', { at: 4_000, took: 4_000, waitMs: 10_000 })
  t.equal(lateWakes(story.history()).count, 1)
})

test('wakes: faults and their aftermath are excused', async (t) => {
  const story = woken(7_500, { at: 4_000, took: 3_000 }).fault(1_000, 3_000)
  t.equal(lateWakes(story.history()).count, 0)
})
