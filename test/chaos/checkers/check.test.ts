import { test } from 'tap'
import { Story } from '../support/story.ts'
import { check } from './check.ts'
import { sentence, table, violations } from './summary.ts'

function calm(): Story {
  const story = new Story().queue({ ordering: 'none' })
  for (let i = 0; i < 40; i += 1) {
    const at = i * 500
    story.push(`m${i}`, { at })
    if (i === 5) continue
    story.ack(story.pop(`m${i}`, { at: at + 10 }), { at: at + 20 })
  }
  const lost = story.pop([], { at: 2_505, outcome: 'unknown' })
  story.ack(lost, { at: 2_520 }).fault(2_600, 4_600)
  story.ack(story.pop('m5', { at: 5_700, attempt: 2 }), { at: 5_710 })
  return story
}

test('the result of a run without violations is one sentence', async (t) => {
  const verdict = check(calm().history())
  t.ok(verdict.ok, violations(verdict))
  t.equal(
    sentence(verdict, { seed: 7 }),
    '40 messages, 1 faults: 0 lost, 0 out of order, 0 overlapping leases, 0 duplicates (0 explained), seed 7',
  )
})

test('the result names every broken rule', async (t) => {
  const story = calm().push('late', { at: 30_000, delayMs: 5_000 })
  story.ack(story.pop('late', { at: 30_010 }), { at: 30_020 })
  story.pop('late', { at: 30_100 })
  const verdict = check(story.push('gone', { at: 40_000 }).history())
  t.notOk(verdict.ok)
  t.equal(
    sentence(verdict, { seed: 7 }),
    '42 messages, 1 faults: 1 lost, 0 out of order, 0 overlapping leases, 1 duplicates (0 explained), 1 early deliveries, seed 7',
  )
  t.match(violations(verdict), /lost: 1\n {2}gone of jobs was never delivered to g/)
})

test('the table has one line per fault, with its recovery or with what was missing', async (t) => {
  const story = calm().fault(0, 0, { name: 'power-loss', skipped: 'a loop device' })
  const verdict = check(story.history())
  const lines = table(verdict).split('\n')
  t.match(lines[0], /^fault +count +push back after/)
  t.match(lines[1], /^node-kill +1 +0\.40 s +0\.41 s /)
  t.match(lines[2], /^power-loss +0 +not injected, needs: a loop device$/)
  const [recovery] = verdict.recoveries
  t.equal(recovery?.longestGapMs, 500)
  t.equal(recovery?.leasesBackMs, 102, 'delivered 102 ms after the lost lease expired')
  t.equal(recovery?.slowSlices, 0)
})
