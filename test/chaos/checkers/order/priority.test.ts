import { test } from 'tap'
import { Story } from '../../support/story.ts'
import { priority } from './priority.ts'

function story(): Story {
  return new Story()
    .queue({ ordering: 'keyed', hasPriorities: true })
    .push(['high@9', 'low@1'], { at: 0 })
}

test('priority: a message that is delivered while a higher one is ready', async (t) => {
  const wrong = story()
  wrong.pop('low@1', { at: 10 })
  wrong.pop('high@9', { at: 20 })
  t.match(priority(wrong.history()).violations, [
    { what: 'low@1 of jobs was delivered while high@9 was ready' },
  ])
})

test('priority: higher ones first, or in the same pop, is correct', async (t) => {
  const inOrder = story()
  inOrder.pop('high@9', { at: 10 })
  inOrder.pop('low@1', { at: 20 })
  t.equal(priority(inOrder.history()).count, 0)
  const together = story()
  together.pop(['high@9', 'low@1'], { at: 10 })
  t.equal(priority(together.history()).count, 0)
})

test('priority: nothing is certain about a message that was pushed meanwhile', async (t) => {
  const later = new Story().queue({ ordering: 'keyed', hasPriorities: true })
  later.push('low@1', { at: 0 }).push('high@9', { at: 9, took: 4 })
  later.pop('low@1', { at: 10, took: 5 })
  later.pop('high@9', { at: 20 })
  t.equal(priority(later.history()).count, 0)
})

test('priority: a pop that was answered after its deadline may have held the higher message', async (t) => {
  const late = story()
  late.pop([], { at: 5, took: 2_100, waitMs: 2_000 })
  late.pop('low@1', { at: 2_200 })
  late.pop('high@9', { at: 2_300, attempt: 1 })
  t.equal(priority(late.history()).count, 0)
  const inTime = story()
  inTime.pop([], { at: 5, took: 2_010, waitMs: 2_000 })
  inTime.pop('low@1', { at: 2_200 })
  inTime.pop('high@9', { at: 2_300, attempt: 1 })
  t.equal(priority(inTime.history()).count, 1)
})

test('priority: a lost pop may have held the higher message, and so may one whose lease expired', async (t) => {
  const lostPop = story()
  lostPop.pop([], { at: 5, outcome: 'unknown' })
  lostPop.pop('low@1', { at: 10 })
  lostPop.pop('high@9', { at: 4_000, attempt: 1 })
  t.equal(priority(lostPop.history()).count, 0)
  const second = story()
  second.pop('low@1', { at: 10 })
  second.pop('high@9', { at: 4_000, attempt: 2 })
  t.equal(priority(second.history()).count, 0)
})
