import { test } from 'tap'
import { Story } from '../support/story.ts'
import { conservation } from './conservation.ts'
import { deadLetters } from './dead-letters.ts'
import { dedup } from './dedup.ts'
import { delays } from './delays.ts'
import { lateWakes } from './late-wakes.ts'
import { leftOver } from './left-over.ts'
import { transactions } from './transactions.ts'

test('dedup: one key, one id', async (t) => {
  const story = new Story()
    .push('a', { at: 0, key: 'k' })
    .push('a', { at: 10, key: 'k', status: 'duplicate' })
  story.pop('a', { at: 20 })
  t.equal(dedup(story.history()).count, 0)
})

test('dedup: two ids are found in the answers, and in what came', async (t) => {
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

test('dedup: without a key, or outside the window, there may be two', async (t) => {
  const loose = new Story().push('a', { at: 0, id: 'x' }).push('a', { at: 10, id: 'y' })
  t.equal(dedup(loose.history()).count, 0)
  const late = new Story()
    .push('a', { at: 0, key: 'k', id: 'x' })
    .push('a', { at: 70_000, key: 'k', id: 'y' })
  t.equal(dedup(late.history()).count, 0)
})

test('delays: never early', async (t) => {
  const told = (at: number): Story => {
    const story = new Story().push('a', { at: 100, delayMs: 1_000 })
    story.pop('a', { at })
    return story
  }
  t.equal(delays(told(1_100).history()).count, 0)
  t.equal(delays(told(1_000).history()).count, 1)
})

test('delays: they count from the first push that may have stored it', async (t) => {
  const story = new Story()
    .push('a', { at: 0, delayMs: 1_000, outcome: 'unknown' })
    .push('a', { at: 500, delayMs: 1_000 })
  story.pop('a', { at: 1_000 })
  t.equal(delays(story.history()).count, 0)
})

function dead(value: string, attempts: number) {
  return { queue: 'jobs', group: 'g', value, attempts }
}

test('dead letters: after the limit and one delivery more, exactly', async (t) => {
  const told = (deliveries: number, letterAttempts: number | undefined): Story => {
    const story = new Story().queue({ retryLimit: 1 }).push('a', { at: 0 })
    for (let i = 0; i < deliveries; i += 1) {
      story.ack(story.pop('a', { at: 10 + i * 10 }), { at: 15 + i * 10, status: 'failed' })
    }
    return story.audit(
      letterAttempts === undefined ? {} : { deadLetters: [dead('a', letterAttempts)] },
    )
  }
  t.equal(deadLetters(told(2, 2).history()).count, 0)
  t.match(deadLetters(told(3, 3).history()).violations, [
    { what: 'a was dead-lettered after 3 attempts of 2' },
    { what: 'a came as attempt 3 of 2' },
  ])
  t.match(deadLetters(told(1, 1).history()).violations, [
    { what: 'a was dead-lettered after 1 attempts of 2' },
  ])
  t.match(deadLetters(told(2, undefined).history()).violations, [
    { what: 'a was given up and is not among the dead letters' },
  ])
})

test('dead letters: whoever asks for one gets one at once', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.ack(story.pop('a', { at: 10 }), { at: 20, status: 'dlq' })
  t.equal(deadLetters(story.audit({ deadLetters: [dead('a', 1)] }).history()).count, 0)
})

test('dead letters: none of what was completed, twice, or never pushed', async (t) => {
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

function pipeline(moved: readonly number[]): Story {
  const story = new Story()
    .queue({ queue: 'one', stage: 1 })
    .queue({ queue: 'two', stage: 2 })
    .push('a', { at: 0, queue: 'one', amount: 10 })
  const held = story.pop('a', { at: 10, queue: 'one', amount: 10 })
  const pushes = moved.map((amount, i) => ({ value: `a${i}`, queue: 'two', amount }))
  story.transaction(held, pushes, { at: 20 })
  for (const { value, amount } of pushes) story.pop(value, { at: 30, queue: 'two', amount })
  return story
}

test('conservation: what goes in comes out', async (t) => {
  t.equal(conservation(pipeline([4, 6]).history()).count, 0)
  t.match(conservation(pipeline([4, 5]).history()).violations, [{ what: 'stage 2 got 9 of 10' }])
})

test('conservation: a message that comes twice is one, two messages of one name are two', async (t) => {
  const again = pipeline([4, 6])
  again.pop('a1', { at: 9_000, queue: 'two', amount: 6 })
  t.equal(conservation(again.history()).count, 0)
  again.pop('a1', { at: 9_100, queue: 'two', amount: 6, id: 'another' })
  t.match(conservation(again.history()).violations, [{ what: 'stage 2 got 16 of 10' }])
})

test('transactions: all or nothing', async (t) => {
  const told = (outcome: 'ok' | 'unknown', arrives: readonly string[], again: boolean): number => {
    const story = new Story().push('a', { at: 0 })
    const held = story.pop('a', { at: 10 })
    story.transaction(held, [{ value: 'x' }, { value: 'y' }], { at: 20, outcome })
    if (arrives.length > 0) story.pop(arrives, { at: 30 })
    if (again) story.pop('a', { at: 5_000 })
    return transactions(story.history()).count
  }
  t.equal(told('ok', ['x', 'y'], false), 0)
  t.equal(told('unknown', ['x', 'y'], false), 0)
  t.equal(told('unknown', [], true), 0)
  t.equal(told('ok', ['x'], false), 1, 'one push is missing')
  t.equal(told('unknown', ['x'], true), 1, 'half of an unknown one')
  t.equal(told('ok', ['x', 'y'], true), 1, 'pushed, and the ack did not count')
  t.equal(told('unknown', ['x', 'y'], true), 1, 'the same, unknown')
  t.equal(told('unknown', [], false), 1, 'the ack counted, and nothing was pushed')
})

test('left over: whatever the audit finds', async (t) => {
  t.equal(leftOver(new Story().history()).count, 0)
  const story = new Story().audit({
    undrained: [{ queue: 'jobs', group: 'g', left: 2 }],
    leases: 1,
    scheduled: 1,
    contradictions: ['a lane is ahead of its partition'],
  })
  t.equal(leftOver(story.history()).count, 4)
})

function woken(came: number, waiter: { at: number; took: number }): Story {
  const story = new Story().queue({ ordering: 'none', wakeMsMax: 1_000 }).push('a', { at: 5_000 })
  story.pop([], { ...waiter, waitMs: waiter.took })
  story.pop('a', { at: came, took: 10 })
  return story
}

test('wakes: late only if somebody stood waiting all the time', async (t) => {
  t.equal(lateWakes(woken(5_500, { at: 4_000, took: 1_400 }).history()).count, 0, 'in time')
  t.equal(lateWakes(woken(7_500, { at: 4_000, took: 2_000 }).history()).count, 0, 'nobody waited')
  t.equal(lateWakes(woken(7_500, { at: 4_000, took: 3_000 }).history()).count, 1)
  t.equal(
    lateWakes(woken(9_500, { at: 6_000, took: 2_000 }).history()).count,
    1,
    'came later, got nothing',
  )
})

test('wakes: the waiter that is woken late at last counts', async (t) => {
  const story = new Story().queue({ ordering: 'none', wakeMsMax: 1_000 }).push('a', { at: 5_000 })
  story.pop('a', { at: 4_000, took: 4_000, waitMs: 10_000 })
  t.equal(lateWakes(story.history()).count, 1)
})

test('wakes: faults, and what follows them, are excused', async (t) => {
  const story = woken(7_500, { at: 4_000, took: 3_000 }).fault(1_000, 3_000)
  t.equal(lateWakes(story.history()).count, 0)
})
