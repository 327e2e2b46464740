import { test } from 'tap'
import { leaseMs, Story } from '../../support/story.ts'
import { attempts } from './attempts.ts'
import { laneLeases } from './lane-leases.ts'
import { overlappingLeases } from './overlapping-leases.ts'
import { staleAcks } from './stale-acks.ts'

test('overlap: consecutive leases do not overlap', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.pop('a', { at: 10 })
  story.pop('a', { at: 10 + leaseMs })
  t.equal(overlappingLeases(story.history()).count, 0)
})

test('overlap: two leases of one message at the same time are found, with any attempts', async (t) => {
  for (const attempt of [1, 2]) {
    const story = new Story().push('a', { at: 0 })
    story.pop('a', { at: 10 })
    story.pop('a', { at: 1_000, attempt })
    t.equal(overlappingLeases(story.history()).count, 1)
  }
})

test('overlap: two groups may lease one message', async (t) => {
  const story = new Story().queue({ groups: ['g', 'h'] }).push('a', { at: 0 })
  story.pop('a', { at: 10 })
  story.pop('a', { at: 20, group: 'h' })
  t.equal(overlappingLeases(story.history()).count, 0)
})

test('overlap: a release, or an ack that may have been accepted, may have ended the lease', async (t) => {
  const released = new Story().push('a', { at: 0 })
  released.release(released.pop('a', { at: 10 }), { at: 20, outcome: 'unknown' })
  released.pop('a', { at: 30 })
  t.equal(overlappingLeases(released.history()).count, 0)
  const acked = new Story().push('a', { at: 0 })
  acked.ack(acked.pop('a', { at: 10 }), { at: 20, status: 'failed', outcome: 'unknown' })
  acked.pop('a', { at: 30 })
  t.equal(overlappingLeases(acked.history()).count, 0)
})

test('overlap: a refused ack has not ended the lease', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.ack(story.pop('a', { at: 10 }), { at: 20, success: false })
  story.pop('a', { at: 30 })
  t.equal(overlappingLeases(story.history()).count, 1)
})

test('overlap: an extension counts from its request', async (t) => {
  const storyWith = (again: number): Story => {
    const story = new Story().push('a', { at: 0 })
    story.extend(story.pop('a', { at: 10 }), 5, { at: 1_000 })
    story.pop('a', { at: again })
    return story
  }
  t.equal(overlappingLeases(storyWith(5_900).history()).count, 1)
  t.equal(overlappingLeases(storyWith(6_100).history()).count, 0)
})

test('overlap: an extension that was not granted leaves the lease as it was', async (t) => {
  const storyWith = (again: number): Story => {
    const story = new Story().push('a', { at: 0 })
    story.extend(story.pop('a', { at: 10, leaseMs: 3_000 }), 5, { at: 1_000, lastsMs: 2_000 })
    story.pop('a', { at: again })
    return story
  }
  t.equal(overlappingLeases(storyWith(2_900).history()).count, 1)
  t.equal(overlappingLeases(storyWith(3_200).history()).count, 0)
})

test('overlap: a long poll may have leased long before its response', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.fault(0, 4_000)
  story.pop('a', { at: 100, took: 3_500, waitMs: 5_000 })
  story.pop('a', { at: 3_700 })
  t.equal(
    overlappingLeases(story.history()).count,
    0,
    'the response was delayed, and the lease had begun',
  )
})

test('overlap: without a fault, a message is leased just after its push', async (t) => {
  const story = new Story().push('a', { at: 20_000 })
  story.pop('a', { at: 0, took: 20_010, waitMs: 30_000 })
  story.pop('a', { at: 21_000 })
  t.equal(overlappingLeases(story.history()).count, 1)
})

test('overlap: leases that the database may have forgotten are excused', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.pop('a', { at: 10 })
  story.fault(100, 900, { forgetsLeases: true })
  story.pop('a', { at: 1_000, attempt: 1 })
  t.equal(overlappingLeases(story.history()).count, 0)
})

test('lanes: a second lease is allowed when all messages of the first have ended', async (t) => {
  const whole = new Story().push(['a', 'b', 'c'], { at: 0 })
  whole.ack(whole.pop(['a', 'b'], { at: 10 }), { at: 20 })
  whole.pop('c', { at: 30 })
  t.equal(laneLeases(whole.history()).count, 0)
  const half = new Story().push(['a', 'b', 'c'], { at: 0 })
  half.ack(half.pop(['a', 'b'], { at: 10 }).slice(0, 1), { at: 20 })
  half.pop('c', { at: 30 })
  t.equal(laneLeases(half.history()).count, 1)
})

test('lanes: other partitions, and queues without order, may have many leases', async (t) => {
  const partitions = new Story().push('a', { at: 0 }).push('b', { at: 0, partition: 'q' })
  partitions.pop('a', { at: 10 })
  partitions.pop('b', { at: 20, partition: 'q' })
  t.equal(laneLeases(partitions.history()).count, 0)
  const loose = new Story().queue({ ordering: 'none' }).push(['a', 'b'], { at: 0 })
  loose.pop('a', { at: 10 })
  loose.pop('b', { at: 20 })
  t.equal(laneLeases(loose.history()).count, 0)
})

test('stale acks: acks in time, refused and unknown ones are correct', async (t) => {
  const inTime = new Story().push('a', { at: 0 })
  inTime.ack(inTime.pop('a', { at: 10 }), { at: leaseMs })
  const refused = new Story().push('a', { at: 0 })
  refused.ack(refused.pop('a', { at: 10 }), { at: 9_000, success: false })
  const unknown = new Story().push('a', { at: 0 })
  unknown.ack(unknown.pop('a', { at: 10 }), { at: 9_000, outcome: 'unknown' })
  for (const story of [inTime, refused, unknown]) t.equal(staleAcks(story.history()).count, 0)
})

test('stale acks: accepted after the lease certainly expired', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.ack(story.pop('a', { at: 10, took: 100 }), { at: 3_200 })
  t.match(staleAcks(story.history()).violations, [{ what: /its lease had expired/ }])
  const maybe = new Story().push('a', { at: 0 })
  maybe.ack(maybe.pop('a', { at: 10, took: 100 }), { at: 3_100 })
  t.equal(staleAcks(maybe.history()).count, 0, 'the lease may have begun with the response')
})

test('stale acks: an extension that may have been granted excuses the client', async (t) => {
  const story = new Story().push('a', { at: 0 })
  const held = story.pop('a', { at: 10 })
  story.extend(held, 5, { at: 1_000, outcome: 'unknown' }).ack(held, { at: 5_500 })
  t.equal(staleAcks(story.history()).count, 0)
})

test('stale acks: accepted after a release, after a first ack, after a later delivery', async (t) => {
  const released = new Story().push('a', { at: 0 })
  const given = released.pop('a', { at: 10 })
  released.release(given, { at: 20 }).ack(given, { at: 30 })
  t.match(staleAcks(released.history()).violations, [{ what: /had been released/ }])
  const twice = new Story().push('a', { at: 0 })
  const held = twice.pop('a', { at: 10 })
  twice.ack(held, { at: 20 }).ack(held, { at: 30 })
  t.match(staleAcks(twice.history()).violations, [{ what: /already been acknowledged/ }])
  const succeeded = new Story().push('a', { at: 0 })
  const first = succeeded.pop('a', { at: 10, leaseMs: 60_000 })
  succeeded.pop('a', { at: 3_000 })
  succeeded.ack(first, { at: 3_100 })
  t.match(staleAcks(succeeded.history()).violations, [{ what: /leased again/ }])
})

test('attempts: they count up from one', async (t) => {
  const story = new Story().push('a', { at: 0 })
  story.pop('a', { at: 10 })
  story.pop('a', { at: 4_000 })
  t.equal(attempts(story.history()).count, 0)
})

test('attempts: a repeated number needs a release, a retry, or a crash', async (t) => {
  const bare = new Story().push('a', { at: 0 })
  bare.pop('a', { at: 10 })
  bare.pop('a', { at: 4_000, attempt: 1 })
  t.equal(attempts(bare.history()).count, 1)
  const retried = new Story().push('a', { at: 0 })
  retried.ack(retried.pop('a', { at: 10 }), { at: 20, status: 'retry' })
  retried.pop('a', { at: 30, attempt: 1 })
  t.equal(attempts(retried.history()).count, 0)
  const crashed = new Story().push('a', { at: 0 })
  crashed.pop('a', { at: 10 })
  crashed.fault(20, 900, { forgetsLeases: true })
  crashed.pop('a', { at: 4_000, attempt: 1 })
  t.equal(attempts(crashed.history()).count, 0)
})

test('attempts: a skipped number needs a pop without a response, or a fault', async (t) => {
  const storyWith = (): Story => {
    const story = new Story().push('a', { at: 0 })
    story.pop('a', { at: 10 })
    return story
  }
  const bare = storyWith()
  bare.pop('a', { at: 8_000, attempt: 3 })
  t.equal(attempts(bare.history()).count, 1)
  const unanswered = storyWith()
  unanswered.pop([], { at: 4_000, outcome: 'unknown' })
  unanswered.pop('a', { at: 8_000, attempt: 3 })
  t.equal(attempts(unanswered.history()).count, 0)
  const faulty = storyWith().fault(4_000, 4_100)
  faulty.pop('a', { at: 8_000, attempt: 3 })
  t.equal(attempts(faulty.history()).count, 0)
})

test('attempts: the first is 1, unless an earlier delivery was lost', async (t) => {
  const bare = new Story().push('a', { at: 0 })
  bare.pop('a', { at: 10, attempt: 2 })
  t.equal(attempts(bare.history()).count, 1)
  const other = new Story().push('a', { at: 0 })
  other.pop([], { at: 5, outcome: 'unknown', group: 'h' })
  other.pop('a', { at: 10, attempt: 2 })
  t.equal(attempts(other.history()).count, 1, 'a lost pop of another group explains nothing')
})
