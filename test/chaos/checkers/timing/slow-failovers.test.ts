import { test } from 'tap'
import { Story } from '../../support/story.ts'
import { check, type Verdict } from '../check.ts'

interface Step {
  readonly backAt: number
  readonly pushMs?: number
  readonly name?: string
}

/** Ten pushes a second, except for the time after the failover at 6 s. */
function failedOver({ backAt, pushMs = 2, name = 'postgres-failover' }: Step): Story {
  const story = new Story().queue({ ordering: 'none' })
  for (let at = 0; at < 40_000; at += 100) {
    if (at > 6_000 && at < backAt) continue
    story.push(`m${at}`, { at, took: pushMs })
    story.ack(story.pop(`m${at}`, { at: at + pushMs + 10 }), { at: at + pushMs + 20 })
  }
  return story.fault(6_000, 9_000, { name })
}

function slow(story: Story): number | undefined {
  const verdict: Verdict = check(story.history())
  return verdict.rules.find(({ rule }) => rule === 'slow failovers')?.count
}

test('failovers: ten seconds without a successful push are too slow', async (t) => {
  t.equal(slow(failedOver({ backAt: 15_900 })), 0)
  t.equal(slow(failedOver({ backAt: 16_100 })), 1)
  t.equal(slow(failedOver({ backAt: 16_100, name: 'postgres-freeze-failover' })), 1)
})

test('failovers: other faults have no time limit', async (t) => {
  t.equal(slow(failedOver({ backAt: 16_100, name: 'postgres-kill' })), 0)
})

test('failovers: a machine that is slow without faults is not checked', async (t) => {
  t.equal(slow(failedOver({ backAt: 17_000, pushMs: 300 })), 0)
})

test('failovers: effects of the next fault do not count', async (t) => {
  const story = failedOver({ backAt: 18_000 }).push('x', { at: 9_500 })
  story.ack(story.pop('x', { at: 9_510 }), { at: 9_520 })
  t.equal(slow(story.fault(10_000, 17_000, { name: 'postgres-kill' })), 0)
})
