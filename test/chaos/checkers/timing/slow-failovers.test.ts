import { test } from 'tap'
import { Story } from '../../support/story.ts'
import { check, type Verdict } from '../check.ts'

interface Told {
  readonly backAt: number
  readonly pushMs?: number
  readonly name?: string
}

/** Pushes ten times a second, but for the time from the failover at 6 s on. */
function failedOver({ backAt, pushMs = 2, name = 'postgres-failover' }: Told): Story {
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

test('failovers: slow from ten seconds without an answered push on', async (t) => {
  t.equal(slow(failedOver({ backAt: 15_900 })), 0)
  t.equal(slow(failedOver({ backAt: 16_100 })), 1)
  t.equal(slow(failedOver({ backAt: 16_100, name: 'postgres-freeze-failover' })), 1)
})

test('failovers: other faults last as long as they are held', async (t) => {
  t.equal(slow(failedOver({ backAt: 16_100, name: 'postgres-kill' })), 0)
})

test('failovers: a machine that is slow without them is not held to a time', async (t) => {
  t.equal(slow(failedOver({ backAt: 17_000, pushMs: 300 })), 0)
})

test('failovers: what the next fault does is not theirs', async (t) => {
  const story = failedOver({ backAt: 18_000 }).push('x', { at: 9_500 })
  story.ack(story.pop('x', { at: 9_510 }), { at: 9_520 })
  t.equal(slow(story.fault(10_000, 17_000, { name: 'postgres-kill' })), 0)
})
