import { test } from 'tap'
import type { FaultRecord } from '../../history/records.ts'
import { Story } from '../../support/story.ts'
import { hostileNeighbours, type Neighbours } from './hostile-neighbours.ts'
import { recoveries } from './recovery.ts'

const start = 10_000
const end = 16_000

test('hostile neighbours: a slow push to another queue is a violation, to the affected queue it is not', async (t) => {
  t.match(checked(calm().push('a', { at: 11_000, took: 1_500, queue: 'others' })), {
    findings: {
      count: 1,
      violations: [{ what: 'locked-queue 1 rows of jobs: a push to others took 1500 ms' }],
    },
  })
  t.equal(checked(calm().push('a', { at: 11_000, took: 900, queue: 'others' })).findings.count, 0)
  t.equal(checked(calm().push('a', { at: 11_000, took: 1_500 })).findings.count, 0)
  const later = calm().push('a', { at: end + 100, took: 1_500, queue: 'others' })
  t.equal(checked(later).findings.count, 0)
})

test("hostile neighbours: a user's transaction must not delay pushes to its own queue either", async (t) => {
  const story = calm().push('a', { at: 11_000, took: 1_500 })
  const mayHarm = { pushes: [], pops: ['jobs'] }
  t.equal(checked(story, { name: 'open-ack-in', mayHarm }).findings.count, 1)
})

test('hostile neighbours: calls of the harness, and effects of other faults, are ignored', async (t) => {
  const own = calm().push('a', { at: 11_000, took: 1_500, queue: 'others', process: 'nemesis' })
  t.equal(checked(own).findings.count, 0)
  const after = calm().fault(start - 2_000, start - 1_000)
  after.push('a', { at: start + 100, took: 1_500, queue: 'others' })
  t.equal(checked(after).findings.count, 0)
})

test('hostile neighbours: a pop that waited although another queue had a message is a violation', async (t) => {
  const waited = (queue: string, delayMs?: number): number => {
    const story = calm().queue({ queue: 'others', ordering: 'none' })
    story.push('a', { at: 11_000, queue, ...(delayMs === undefined ? {} : { delayMs }) })
    story.pop('a', { at: 10_500, took: 2_500, waitMs: 5_000, queue })
    return checked(story).findings.count
  }
  t.equal(waited('others'), 1)
  t.equal(waited('others', 1_500), 0)
  t.equal(waited('jobs'), 0)
})

test('hostile neighbours: without a waiter, or with a leased lane, there is no violation', async (t) => {
  const asked = calm().queue({ queue: 'others' }).push('a', { at: 11_000, queue: 'others' })
  asked.pop('a', { at: 13_500, waitMs: 5_000, queue: 'others' })
  t.equal(checked(asked).findings.count, 0)
  const held = (acked: number): number => {
    const story = calm()
      .queue({ queue: 'others' })
      .push(['a', 'b'], { at: 10_100, queue: 'others' })
    const first = story.pop('a', { at: 10_200, queue: 'others' })
    story.ack(first, { at: acked })
    story.pop('b', { at: 10_300, took: 2_700, waitMs: 5_000, queue: 'others' })
    return checked(story).findings.count
  }
  t.equal(held(10_400), 1)
  t.equal(held(12_900), 0)
})

test('hostile neighbours: on a busy machine the rule reports that it could not check', async (t) => {
  const slow = new Story().queue({ queue: 'others' })
  for (let at = 5_100; at < start - 400; at += 500) slow.push(`calm ${at}`, { at, took: 300 })
  slow.push('a', { at: 11_000, took: 1_500, queue: 'others' })
  t.match(checked(slow), { findings: { count: 0 }, remarks: [/1 faults not checked/] })
  const busy = calm().push('a', { at: 11_000, took: 1_500, queue: 'others' })
  const slowCommits = [{ from: 11_900, to: 12_300 }]
  t.match(checked(busy, { slowCommits }), { findings: { count: 0 }, remarks: [/1 slow calls not/] })
})

/** Fast pushes before the fault. */
function calm(): Story {
  const story = new Story().queue({ queue: 'others' })
  for (let at = 6_000; at < start; at += 500) story.push(`calm ${at}`, { at })
  return story
}

function checked(story: Story, fault: Partial<FaultRecord> = {}): Neighbours {
  const mayHarm = { pushes: ['jobs'], pops: ['jobs'] }
  story.fault(start, end, { name: 'locked-queue', target: '1 rows of jobs', mayHarm, ...fault })
  const history = story.history()
  return hostileNeighbours(history, recoveries(history))
}
