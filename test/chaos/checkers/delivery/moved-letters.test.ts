import { test } from 'tap'
import { Story } from '../../support/story.ts'
import { deadLetters } from './dead-letters.ts'
import { lost } from './lost.ts'
import { movedLetters } from './moved-letters.ts'
import { unexpected } from './unexpected.ts'

const letter = { queue: 'jobs', group: 'g', value: 'a', attempts: 4 }

/** A message that fails four times, and its copy in the queue `moved`. */
function givenUp(copies: number): Story {
  const story = new Story()
    .queue({ queue: 'moved', ordering: 'none', lettersOf: 'jobs' })
    .push('a', { at: 0 })
  for (const at of [100, 200, 300, 400]) {
    story.ack(story.pop('a', { at }), { at: at + 20, status: 'failed' })
  }
  for (let copy = 0; copy < copies; copy += 1) {
    const got = story.pop('a', { at: 500 + copy, queue: 'moved', id: `copy ${copy}`, attempt: 1 })
    story.ack(got, { at: 600 })
  }
  return story
}

test('moved letters: one copy, delivered, is correct', async (t) => {
  const history = givenUp(1)
    .audit({ deadLetters: [letter] })
    .history()
  for (const rule of [movedLetters, deadLetters, lost, unexpected]) t.equal(rule(history).count, 0)
})

test('moved letters: a message that was moved twice', async (t) => {
  const history = givenUp(2)
    .audit({ deadLetters: [letter, letter] })
    .history()
  t.match(movedLetters(history).violations, [{ what: 'a was moved twice to moved' }])
})

test('moved letters: a message that was given up and not moved', async (t) => {
  const history = givenUp(0).audit({}).history()
  t.match(deadLetters(history).violations, [
    { what: 'a used up its attempts and is not a dead letter' },
  ])
})

test('moved letters: a copy that was never delivered', async (t) => {
  const history = givenUp(0)
    .audit({ deadLetters: [letter] })
    .history()
  t.match(movedLetters(history).violations, [{ what: 'a was moved to moved and not delivered' }])
})

test('unexpected: a moved letter of a message that was never pushed', async (t) => {
  const story = givenUp(1).audit({ deadLetters: [letter] })
  story.pop('b', { at: 700, queue: 'moved' })
  t.match(unexpected(story.history()).violations, [
    { what: 'b of moved was delivered, but never pushed to jobs' },
  ])
})
