// Compares the list of deadlines with a plain array, and the estimate of the database's clock with the true
// time.
import { seededRandom } from '@rouse/testkit'
import { test } from 'tap'
import { DatabaseClock } from '../../src/scheduler/database-clock.ts'
import { DeadlineList, deadlinesMax } from '../../src/scheduler/due-list.ts'

const ascending = (a: number, b: number): number => a - b

test('an earlier deadline comes before a later one that was added first', async (t) => {
  const list = new DeadlineList<string>()
  list.add(200, 'a')
  t.equal(list.firstDueAt(), 200)
  list.add(100, 'b')
  t.equal(list.firstDueAt(), 100)
  t.same([...list.takeDue(99)], [], 'no deadline is early')
  t.same([...list.takeDue(100)], ['b'])
  t.same([...list.takeDue(1_000)], ['a'])
  t.equal(list.firstDueAt(), Number.POSITIVE_INFINITY)
})

test('a time that is added twice is one deadline with both kinds', async (t) => {
  const list = new DeadlineList<string>()
  list.add(100, 'a')
  list.add(100, 'a')
  list.add(100, 'b')
  t.equal(list.size, 1)
  t.same([...list.takeDue(100)].sort(), ['a', 'b'])
})

test('a full list evicts the latest entry for an earlier one', async (t) => {
  const list = new DeadlineList<string>(2)
  t.ok(list.add(100, 'a'))
  t.ok(list.add(200, 'b'))
  t.notOk(list.add(300, 'c'), 'the new one is the latest')
  t.ok(list.add(150, 'd'))
  t.ok(list.add(150, 'e'), 'an existing time needs no space')
  t.same([...list.takeDue(1_000)], ['a', 'd', 'e'])
})

test('a list keeps its maximum size, even if every new deadline is the earliest', async (t) => {
  const list = new DeadlineList<string>()
  for (let at = 60_000; at > 0; at -= 1) list.add(at, 'a')
  t.equal(list.size, deadlinesMax)
  t.equal(list.firstDueAt(), 1)
})

test('the list behaves like a plain array over random sequences', async (t) => {
  const max = 20
  for (let seed = 1; seed <= 50; seed += 1) {
    const random = seededRandom(seed)
    const list = new DeadlineList<number>(max)
    let plain: { at: number; kind: number }[] = []
    for (let step = 0; step < 300; step += 1) {
      const at = random.below(1_000)
      const kind = random.below(3)
      const choice = random.below(20)
      if (choice < 18) {
        list.add(at, kind)
        plain.push({ at, kind })
        const times = [...new Set(plain.map((one) => one.at))].sort(ascending).slice(0, max)
        plain = plain.filter((one) => times.includes(one.at))
        if (list.size !== times.length) t.fail(`seed ${seed}: ${list.size} for ${times.length}`)
      } else if (choice === 18) {
        const due = [...list.takeDue(at)].sort(ascending)
        const wanted = new Set(plain.filter((one) => one.at <= at).map((one) => one.kind))
        plain = plain.filter((one) => one.at > at)
        t.same(due, [...wanted].sort(ascending), `seed ${seed}`)
      } else {
        list.forgetUntil(at)
        plain = plain.filter((one) => one.at > at)
      }
      const first = Math.min(Number.POSITIVE_INFINITY, ...plain.map((one) => one.at))
      if (list.firstDueAt() !== first) t.fail(`seed ${seed}: ${list.firstDueAt()} for ${first}`)
    }
  }
})

/** Samples a clock that is `offset` ms ahead. The query reads it after `there` ms and takes `total` ms. */
function ask(clock: DatabaseClock, at: number, offset: number, there: number, total: number): void {
  clock.sample({
    sentAtMs: at,
    receivedAtMs: at + total,
    databaseMs: Math.floor(at + there + offset),
  })
}

test('before the first answer the time of the database is unknown', async (t) => {
  const clock = new DatabaseClock()
  t.equal(clock.earliestMs(0), undefined)
  t.equal(clock.toLocal(5), undefined)
})

test('the true time lies between the estimates, and no timer fires early', async (t) => {
  const random = seededRandom(7)
  for (let round = 0; round < 500; round += 1) {
    const offset = (random.next() - 0.5) * 1e9
    const clock = new DatabaseClock()
    let at = random.below(1_000_000)
    for (let sample = 0; sample < 5; sample += 1) {
      const total = random.next() * 50
      ask(clock, at, offset, random.next() * total, total)
      at += 1_000
      const now = at + random.next() * 500
      const truth = now + offset
      const [earliest, latest] = [clock.earliestMs(now) ?? 0, clock.latestMs(now) ?? 0]
      if (earliest > truth || latest < truth) t.fail(`${earliest} ≤ ${truth} ≤ ${latest}`)
      const due = truth + random.next() * 500
      const local = clock.toLocal(due) ?? 0
      if (local + offset < due - 1e-6) t.fail('a timer would have fired early')
    }
  }
  t.pass('never early')
})

test('the estimate with the shortest round trip is used until it is old', async (t) => {
  const clock = new DatabaseClock()
  ask(clock, 0, 1_000, 1, 2)
  ask(clock, 1_000, 1_000, 20, 40)
  t.equal(clock.roundTripMs(), 2, 'a longer one is ignored')
  ask(clock, 400_000, 1_000, 20, 40)
  t.equal(clock.roundTripMs(), 40, 'after minutes the drift may be larger')
})

test('the estimate follows a clock that was set at once', async (t) => {
  const clock = new DatabaseClock()
  ask(clock, 0, 0, 1, 2)
  ask(clock, 1_000, 3_600_000, 20, 40)
  const now = clock.earliestMs(2_000) ?? 0
  t.ok(now > 3_601_000 && now <= 3_602_000, `${now}`)
  ask(clock, 3_000, -5_000, 20, 40)
  t.ok((clock.latestMs(4_000) ?? 0) < 0, 'also backwards')
})
