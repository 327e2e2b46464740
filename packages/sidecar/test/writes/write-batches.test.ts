import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { WriteQueue } from '../../src/writes/write-queue.ts'

interface Job {
  readonly name: string
  readonly bytes?: number
}

interface Limits {
  readonly slots?: number
  readonly patienceMs?: number
  readonly countMax?: number
  readonly bytesMax?: number
  readonly timeoutMs?: number
}

/** A queue of writes whose calls end when the test ends them. */
function held(options: Limits = {}) {
  const calls: { names: string[]; finish: () => void }[] = []
  const queue = new WriteQueue<string, string>({
    slots: options.slots ?? 1,
    patienceMs: options.patienceMs ?? 60_000,
    pendingMax: 100,
    countMax: options.countMax ?? 100,
    bytesMax: options.bytesMax ?? 1_000,
    timeoutMs: options.timeoutMs ?? 1_000,
    joins: (first, other) => first[0] === other[0],
    run: (batch) =>
      new Promise((resolve) => {
        const finish = (): void => {
          for (const write of batch) write.resolve('done')
          resolve()
        }
        calls.push({ names: batch.map(({ input }) => input), finish })
      }),
  })
  const add = ({ name, bytes = 0 }: Job): Promise<string> => {
    const answer = queue.submit(name, { count: 1, bytes })
    // Most tests end before their writes have a result.
    answer.catch(() => {})
    return answer
  }
  return { queue, add, calls }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a single request is sent at once', async (t) => {
  const { add, calls } = held()
  void add({ name: 'a1' })
  t.same(calls[0]?.names, ['a1'])
})

test('requests that arrive while the slot is busy share the next call', async (t) => {
  const { add, calls } = held()
  for (const name of ['a1', 'a2', 'a3']) void add({ name })
  t.equal(calls.length, 1)
  calls[0]?.finish()
  await turn()
  t.same(calls[1]?.names, ['a2', 'a3'])
})

test('the second slot stays closed while the first call is fast', async (t) => {
  const { add, calls } = held({ slots: 2 })
  for (const name of ['a1', 'a2', 'a3']) void add({ name })
  await turn()
  t.equal(calls.length, 1)
  calls[0]?.finish()
  await turn()
  t.same(calls[1]?.names, ['a2', 'a3'])
})

test('a slow call does not delay later requests', async (t) => {
  const { add, calls } = held({ slots: 2, patienceMs: 5 })
  for (const name of ['a1', 'a2', 'a3']) void add({ name })
  await eventually(() => calls.length === 2)
  t.same(calls[1]?.names, ['a2', 'a3'])
  void add({ name: 'a4' })
  calls[1]?.finish()
  await eventually(() => calls.length === 3)
  t.same(calls[2]?.names, ['a4'], 'again, while the first is stuck')
})

test('requests that do not fit into one call use the second slot at once', async (t) => {
  const { add, calls } = held({ slots: 2, countMax: 2 })
  for (const name of ['a1', 'a2', 'a3', 'a4']) void add({ name })
  calls[0]?.finish()
  await turn()
  t.same(
    calls.slice(1).map(({ names }) => names),
    [['a2', 'a3'], ['a4']],
  )
})

test('every slot is open when patienceMs is 0', async (t) => {
  const { add, calls } = held({ slots: 2, patienceMs: 0 })
  for (const name of ['a1', 'a2', 'a3']) void add({ name })
  t.equal(calls.length, 2)
})

test('a call stays within its limits of count and bytes', async (t) => {
  const { add, calls } = held({ countMax: 2, bytesMax: 10 })
  for (const name of ['a1', 'a2', 'a3', 'a4']) void add({ name })
  void add({ name: 'a5', bytes: 50 })
  void add({ name: 'a6' })
  for (let i = 0; i < 4; i += 1) {
    calls[i]?.finish()
    await turn()
  }
  t.same(
    calls.map(({ names }) => names),
    [['a1'], ['a2', 'a3'], ['a4'], ['a5'], ['a6']],
    'a request above the limit is sent alone',
  )
})

test('requests that may not join the first wait for another call', async (t) => {
  const { add, calls } = held()
  for (const name of ['a1', 'a2', 'b1', 'a3']) void add({ name })
  calls[0]?.finish()
  await turn()
  calls[1]?.finish()
  await turn()
  t.same(
    calls.map(({ names }) => names),
    [['a1'], ['a2', 'a3'], ['b1']],
  )
})

test('a queue with too many pending writes refuses the next', async (t) => {
  const { add, calls } = held()
  const taken = Array.from({ length: 101 }, (_, i) => add({ name: `a${i}` }))
  await t.rejects(add({ name: 'a101' }), { code: 'overloaded' })
  calls[0]?.finish()
  await turn()
  calls[1]?.finish()
  t.equal(new Set(await Promise.all(taken)).size, 1)
})

test('idle resolves when the last call has ended', async (t) => {
  const { queue, add, calls } = held()
  await queue.idle()
  void add({ name: 'a1' })
  let idle = false
  const waiting = queue.idle().then(() => {
    idle = true
  })
  await turn()
  t.notOk(idle)
  calls[0]?.finish()
  await waiting
  t.ok(idle)
})

test('a write refused at its deadline is not sent, and no empty call is made', async (t) => {
  // Both times are far apart, because after a pause of the process that is longer than both, the second slot
  // would open first.
  const { queue, add, calls } = held({ slots: 2, patienceMs: 500, timeoutMs: 30 })
  const late = add({ name: 'a1' }).catch(() => 'unknown')
  await t.rejects(add({ name: 'a2' }), { code: 'database_unavailable' })
  // If the timer for the second slot were not cleared, it would start an empty call now.
  await new Promise((resolve) => setTimeout(resolve, 600))
  t.equal(calls.length, 1)
  for (const { finish } of calls) finish()
  t.equal(await late, 'unknown')
  await queue.idle()
})
