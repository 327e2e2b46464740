import { test } from 'tap'
import { Story } from '../../support/story.ts'
import { conservation } from './conservation.ts'
import { leftOver } from './left-over.ts'
import { transactions } from './transactions.ts'

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

test('conservation: the sum of a stage is the sum of the stage before', async (t) => {
  t.equal(conservation(pipeline([4, 6]).history()).count, 0)
  t.match(conservation(pipeline([4, 5]).history()).violations, [
    { what: 'stage 2 got 9 instead of 10' },
  ])
})

test('conservation: a redelivered message counts once, two messages of one value count twice', async (t) => {
  const again = pipeline([4, 6])
  again.pop('a1', { at: 9_000, queue: 'two', amount: 6 })
  t.equal(conservation(again.history()).count, 0)
  again.pop('a1', { at: 9_100, queue: 'two', amount: 6, id: 'another' })
  t.match(conservation(again.history()).violations, [{ what: 'stage 2 got 16 instead of 10' }])
})

test('transactions: acks and pushes take effect together or not at all', async (t) => {
  const storyWith = (
    outcome: 'ok' | 'unknown',
    arrives: readonly string[],
    again: boolean,
  ): number => {
    const story = new Story().push('a', { at: 0 })
    const held = story.pop('a', { at: 10 })
    story.transaction(held, [{ value: 'x' }, { value: 'y' }], { at: 20, outcome })
    if (arrives.length > 0) story.pop(arrives, { at: 30 })
    if (again) story.pop('a', { at: 5_000 })
    return transactions(story.history()).count
  }
  t.equal(storyWith('ok', ['x', 'y'], false), 0)
  t.equal(storyWith('unknown', ['x', 'y'], false), 0)
  t.equal(storyWith('unknown', [], true), 0)
  t.equal(storyWith('ok', ['x'], false), 1, 'one push is missing')
  t.equal(storyWith('unknown', ['x'], true), 1, 'half of an unknown transaction')
  t.equal(storyWith('ok', ['x', 'y'], true), 1, 'pushed, but the ack had no effect')
  t.equal(storyWith('unknown', ['x', 'y'], true), 1, 'the same with an unknown outcome')
  t.equal(storyWith('unknown', [], false), 1, 'acknowledged, but nothing was pushed')
})

test('left over: everything that the audit finds is a violation', async (t) => {
  t.equal(leftOver(new Story().history()).count, 0)
  const story = new Story().audit({
    undrained: [{ queue: 'jobs', group: 'g', left: 2 }],
    leases: 1,
    scheduled: 1,
    contradictions: ['a lane is ahead of its partition'],
  })
  t.equal(leftOver(story.history()).count, 4)
})
