// The deadline heap against a plain sorted list, and the estimate of the database's clock against a clock that is known.
import { seededRandom } from '@rouse/testkit'
import { test } from 'tap'
import { DatabaseClock } from '../src/services/database-clock.ts'
import { DeadlineHeap } from '../src/services/deadline-heap.ts'

const ascending = (a: number, b: number): number => a - b

test('an earlier deadline comes before a later one that was there first', async (t) => {
  const heap = new DeadlineHeap<string>()
  heap.add(200, 'a')
  t.equal(heap.firstDueAt(), 200)
  heap.add(100, 'b')
  t.equal(heap.firstDueAt(), 100)
  t.same([...heap.takeDue(99)], [], 'nothing is early')
  t.same([...heap.takeDue(100)], ['b'])
  t.same([...heap.takeDue(1_000)], ['a'])
  t.equal(heap.firstDueAt(), Number.POSITIVE_INFINITY)
})

test('a time that is told twice is one deadline, of all kinds it was told for', async (t) => {
  const heap = new DeadlineHeap<string>()
  heap.add(100, 'a')
  heap.add(100, 'a')
  heap.add(100, 'b')
  t.equal(heap.size, 1)
  t.same([...heap.takeDue(100)].sort(), ['a', 'b'])
})

test('a full heap takes only what is earlier than all it has', async (t) => {
  const heap = new DeadlineHeap<string>(2)
  t.ok(heap.add(100, 'a'))
  t.ok(heap.add(200, 'a'))
  t.notOk(heap.add(150, 'a'))
  t.ok(heap.add(50, 'a'))
  t.equal(heap.firstDueAt(), 50)
})

test('the heap gives what a sorted list gives, over random sequences', async (t) => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const random = seededRandom(seed)
    const heap = new DeadlineHeap<number>()
    let list: { at: number; kind: number }[] = []
    for (let step = 0; step < 300; step += 1) {
      const at = random.below(1_000)
      const kind = random.below(3)
      const choice = random.below(10)
      if (choice < 7) {
        heap.add(at, kind)
        list.push({ at, kind })
      } else if (choice < 9) {
        const due = [...heap.takeDue(at)].sort(ascending)
        const wanted = new Set(list.filter((one) => one.at <= at).map((one) => one.kind))
        list = list.filter((one) => one.at > at)
        t.same(due, [...wanted].sort(ascending), `seed ${seed}`)
      } else {
        heap.forgetUntil(at)
        list = list.filter((one) => one.at > at)
      }
      const first = Math.min(Number.POSITIVE_INFINITY, ...list.map((one) => one.at))
      if (heap.firstDueAt() !== first) t.fail(`seed ${seed}: ${heap.firstDueAt()} for ${first}`)
    }
  }
})

/** The database's clock is `offset` ahead of ours; the query reads it `there` ms after it left, and takes `total`. */
function ask(clock: DatabaseClock, at: number, offset: number, there: number, total: number): void {
  clock.sample({
    sentAtMs: at,
    receivedAtMs: at + total,
    databaseMs: Math.floor(at + there + offset),
  })
}

test('before the first answer nothing is known', async (t) => {
  const clock = new DatabaseClock()
  t.equal(clock.earliestMs(0), undefined)
  t.equal(clock.toLocal(5), undefined)
})

test('the true time is between the earliest and the latest, and a time has come when it is said to', async (t) => {
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

test('the shortest round trip counts, until it is old', async (t) => {
  const clock = new DatabaseClock()
  ask(clock, 0, 1_000, 1, 2)
  ask(clock, 1_000, 1_000, 20, 40)
  t.equal(clock.roundTripMs(), 2, 'a worse one changes nothing')
  ask(clock, 400_000, 1_000, 20, 40)
  t.equal(clock.roundTripMs(), 40, 'after minutes the drift is worse than that')
})

test('a clock that was set is believed at once', async (t) => {
  const clock = new DatabaseClock()
  ask(clock, 0, 0, 1, 2)
  ask(clock, 1_000, 3_600_000, 20, 40)
  const now = clock.earliestMs(2_000) ?? 0
  t.ok(now > 3_601_000 && now <= 3_602_000, `${now}`)
  ask(clock, 3_000, -5_000, 20, 40)
  t.ok((clock.latestMs(4_000) ?? 0) < 0, 'back as well')
})
