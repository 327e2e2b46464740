import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { Batcher } from '../src/writes/batcher.ts'

interface Job {
  readonly name: string
  readonly bytes?: number
}

/** A batcher whose calls end only when told to. */
function held(
  options: { slots?: number; patienceMs?: number; countMax?: number; bytesMax?: number } = {},
) {
  const calls: { names: string[]; finish: () => void }[] = []
  const batcher = new Batcher<Job>({
    slots: options.slots ?? 1,
    patienceMs: options.patienceMs ?? 60_000,
    pendingMax: 100,
    countMax: options.countMax ?? 100,
    bytesMax: options.bytesMax ?? 1_000,
    weigh: (job) => ({ count: 1, bytes: job.bytes ?? 0 }),
    joins: (first, other) => first.name[0] === other.name[0],
    run: (batch) =>
      new Promise((resolve) => {
        calls.push({ names: batch.map((job) => job.name), finish: resolve })
      }),
  })
  return { batcher, calls }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a lone request leaves at once', async (t) => {
  const { batcher, calls } = held()
  batcher.add({ name: 'a1' })
  t.same(calls[0]?.names, ['a1'])
})

test('requests that arrive while the slot is busy leave together', async (t) => {
  const { batcher, calls } = held()
  for (const name of ['a1', 'a2', 'a3']) batcher.add({ name })
  t.equal(calls.length, 1)
  calls[0]?.finish()
  await turn()
  t.same(calls[1]?.names, ['a2', 'a3'])
})

test('a second slot stays closed while the first call is quick', async (t) => {
  const { batcher, calls } = held({ slots: 2 })
  for (const name of ['a1', 'a2', 'a3']) batcher.add({ name })
  await turn()
  t.equal(calls.length, 1)
  calls[0]?.finish()
  await turn()
  t.same(calls[1]?.names, ['a2', 'a3'])
})

test('a call that takes long does not hold up those who come after it', async (t) => {
  const { batcher, calls } = held({ slots: 2, patienceMs: 5 })
  for (const name of ['a1', 'a2', 'a3']) batcher.add({ name })
  await eventually(() => calls.length === 2)
  t.same(calls[1]?.names, ['a2', 'a3'])
  batcher.add({ name: 'a4' })
  calls[1]?.finish()
  await eventually(() => calls.length === 3)
  t.same(calls[2]?.names, ['a4'], 'and again, while the first is stuck')
})

test('what does not fit into one call takes the second slot at once', async (t) => {
  const { batcher, calls } = held({ slots: 2, countMax: 2 })
  for (const name of ['a1', 'a2', 'a3', 'a4']) batcher.add({ name })
  calls[0]?.finish()
  await turn()
  t.same(
    calls.slice(1).map(({ names }) => names),
    [['a2', 'a3'], ['a4']],
  )
})

test('without patience every slot is open', async (t) => {
  const { batcher, calls } = held({ slots: 2, patienceMs: 0 })
  for (const name of ['a1', 'a2', 'a3']) batcher.add({ name })
  t.equal(calls.length, 2)
})

test('a call stays within its limits of count and bytes', async (t) => {
  const { batcher, calls } = held({ countMax: 2, bytesMax: 10 })
  for (const name of ['a1', 'a2', 'a3', 'a4']) batcher.add({ name })
  batcher.add({ name: 'a5', bytes: 50 })
  batcher.add({ name: 'a6' })
  for (let i = 0; i < 4; i += 1) {
    calls[i]?.finish()
    await turn()
  }
  t.same(
    calls.map(({ names }) => names),
    [['a1'], ['a2', 'a3'], ['a4'], ['a5'], ['a6']],
    'what is too big for any limit leaves alone',
  )
})

test('requests that may not join the first wait for a call of their own', async (t) => {
  const { batcher, calls } = held()
  for (const name of ['a1', 'a2', 'b1', 'a3']) batcher.add({ name })
  calls[0]?.finish()
  await turn()
  calls[1]?.finish()
  await turn()
  t.same(
    calls.map(({ names }) => names),
    [['a1'], ['a2', 'a3'], ['b1']],
  )
})

test('a batcher with too many pending requests refuses the next', async (t) => {
  const { batcher } = held()
  for (let i = 0; i <= 100; i += 1) t.ok(batcher.add({ name: `a${i}` }))
  t.notOk(batcher.add({ name: 'a101' }))
})

test('idle resolves when the last call has ended', async (t) => {
  const { batcher, calls } = held()
  await batcher.idle()
  batcher.add({ name: 'a1' })
  let idle = false
  const waiting = batcher.idle().then(() => {
    idle = true
  })
  await turn()
  t.notOk(idle)
  calls[0]?.finish()
  await waiting
  t.ok(idle)
})

test('a request that is taken out of the line does not leave, and nor does an empty call', async (t) => {
  const { batcher, calls } = held({ slots: 2, patienceMs: 5 })
  const [gone, stays] = [{ name: 'a2' }, { name: 'b1' }]
  batcher.add({ name: 'a1' })
  batcher.add(gone)
  batcher.remove(gone)
  t.equal(batcher.pending, 0)
  // Had the patience for it not ended with it, a call would begin before the one of who comes next.
  await new Promise((resolve) => setTimeout(resolve, 20))
  batcher.add(stays)
  await eventually(() => calls.length === 2)
  t.same(calls[1]?.names, ['b1'])
  for (const { finish } of calls) finish()
  await batcher.idle()
})
