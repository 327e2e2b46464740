import { seededRandom } from '@rouse/testkit'
import { test } from 'tap'
import { Backlog } from '../../src/consume/backlog.ts'
import type { Held } from '../../src/consume/held.ts'

let count = 0

function held(partitionId: string): Held {
  count += 1
  return { message: { partitionId, seq: count }, lease: {}, settled: false } as unknown as Held
}

test('without ordering every waiting message may start', async (t) => {
  const backlog = new Backlog(() => false)
  const messages = [held('a'), held('a'), held('a')]
  backlog.add(messages)
  t.equal(backlog.runnable, 3)
  t.same(backlog.take(1), [messages[0]])
  t.same(backlog.take(5), [messages[1], messages[2]])
  t.same([backlog.size, backlog.take(1)], [0, []])
})

test('with ordering a partition has one handler at a time', async (t) => {
  const backlog = new Backlog(() => true)
  const [a1, a2, b1] = [held('a'), held('a'), held('b')]
  backlog.add([a1, a2, b1])
  t.equal(backlog.runnable, 2)
  t.same(backlog.take(1), [a1])
  t.same(backlog.take(1), [b1])
  t.same(backlog.take(1), [], 'a2 must wait for a1')
  backlog.done([a1])
  t.same(backlog.take(1), [a2])
})

test('a batch blocks the partitions it draws from', async (t) => {
  const backlog = new Backlog(() => true)
  const [a1, a2, a3, b1] = [held('a'), held('a'), held('a'), held('b')]
  backlog.add([a1, a2, a3, b1])
  t.same(backlog.take(2), [a1, a2])
  t.same(backlog.take(2), [b1], 'nothing of a')
  backlog.done([a1, a2])
  t.same(backlog.take(2), [a3])
})

test('messages that are not ordered start beside ordered ones', async (t) => {
  const backlog = new Backlog(({ partitionId }) => partitionId !== 'loose')
  const [l1, l2, l3, a1, a2] = [held('loose'), held('loose'), held('loose'), held('a'), held('a')]
  backlog.add([l1, a1, l2, a2, l3])
  t.equal(backlog.runnable, 4)
  t.same([backlog.take(1), backlog.take(1)], [[l1], [a1]], 'lanes take turns')
  t.same(backlog.take(5), [l2, l3], 'a2 must wait for a1')
  backlog.done([l1, l2, l3])
  t.same(backlog.take(1), [])
  backlog.done([a1])
  t.same(backlog.take(1), [a2])
  t.same([backlog.size, backlog.runnable], [0, 0])
})

test('a removed message is neither returned nor counted', async (t) => {
  const backlog = new Backlog(() => true)
  const [a1, a2, b1] = [held('a'), held('a'), held('b')]
  backlog.add([a1, a2, b1])
  t.same(
    backlog.remove(({ message }) => message.partitionId === 'a'),
    [a1, a2],
  )
  t.same([backlog.size, backlog.runnable], [1, 1])
  t.same(backlog.take(1), [b1])
})

for (const ordered of [true, false]) {
  test(`nothing is lost, duplicated or out of order (${ordered ? 'ordered' : 'unordered'})`, async (t) => {
    for (let seed = 1; seed <= 50; seed += 1) {
      const random = seededRandom(seed)
      const backlog = new Backlog(() => ordered)
      const running: Held[][] = []
      const out: Held[] = []
      const all: Held[] = []
      for (let step = 0; step < 400; step += 1) {
        const choice = random.below(10)
        if (choice < 3) {
          const fresh = Array.from({ length: random.below(5) }, () => held(`p${random.below(4)}`))
          backlog.add(fresh)
          all.push(...fresh)
        } else if (choice < 7) {
          const taken = backlog.take(1 + random.below(3))
          if (taken.length > 0) running.push(taken)
          out.push(...taken)
        } else if (choice < 9 && running.length > 0) {
          backlog.done(running.splice(random.below(running.length), 1)[0] as Held[])
        } else if (random.below(8) === 0) {
          out.push(...backlog.remove(({ message }) => message.partitionId === 'p0'))
        }
        if (ordered) {
          const busy = running.flatMap((job) => [...new Set(job.map((h) => h.message.partitionId))])
          if (new Set(busy).size !== busy.length) return t.fail(`two at once, seed ${seed}`)
        }
      }
      for (const job of running) backlog.done(job)
      for (let rest = backlog.take(100); rest.length > 0; rest = backlog.take(100)) {
        out.push(...rest)
        backlog.done(rest)
      }
      if (out.length !== all.length || new Set(out).size !== all.length || backlog.size !== 0) {
        return t.fail(`${out.length} of ${all.length} came out, seed ${seed}`)
      }
      const seqs = new Map<string, number>()
      for (const { message } of out) {
        if (ordered && (seqs.get(message.partitionId) ?? 0) > message.seq) {
          return t.fail(`out of order, seed ${seed}`)
        }
        seqs.set(message.partitionId, message.seq)
      }
    }
    t.pass('50 schedules')
  })
}
