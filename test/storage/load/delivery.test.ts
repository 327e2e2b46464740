// With concurrent producers and consumers, every message arrives exactly once and in order. Run the full size
// with `ROUSE_TEST_LOAD_MESSAGES=100000 npm test -- test/storage/load/delivery.test.ts`
import { configure } from '@rouse/storage'
import { type Test, test } from 'tap'
import { inconsistencies } from '../support/consistency.ts'
import {
  type LoadPlan,
  type LoadResult,
  loadDatabase,
  loadMessageCount,
  runLoad,
} from '../support/load.ts'

const connections = 32
const seed = 20_260_401

test('producers and consumers of one partition lose, duplicate and reorder nothing', async (t) => {
  const { result, plan } = await load(t, {
    producers: 16,
    partitions: 1,
    pushBatchMax: 100,
    demand: { batch: 200, partitions: 1 },
  })
  everyMessageOnce(t, plan, result)
  inOrder(t, result)
})

test('producers and consumers of 1,000 partitions lose, duplicate and reorder nothing', async (t) => {
  const { result, plan } = await load(t, {
    producers: 12,
    partitions: 1_000,
    pushBatchMax: 100,
    demand: { batch: 200, partitions: 20 },
  })
  everyMessageOnce(t, plan, result)
  inOrder(t, result)
})

test('consumers that share an unordered partition lose and duplicate nothing', async (t) => {
  const { result, plan } = await load(t, {
    producers: 8,
    partitions: 1,
    pushBatchMax: 100,
    demand: { batch: 50, partitions: 1 },
    ordering: 'none',
  })
  everyMessageOnce(t, plan, result)
})

interface Load extends Pick<LoadPlan, 'partitions' | 'pushBatchMax' | 'demand'> {
  readonly producers: number
  readonly ordering?: 'none'
}

async function load(
  t: Test,
  { producers, ordering, ...rest }: Load,
): Promise<{ result: LoadResult; plan: LoadPlan }> {
  const { pool, clients } = await loadDatabase(t, connections)
  const queue = 'load'
  await configure(pool, { queue, options: ordering === undefined ? {} : { ordering } })
  const plan = {
    ...rest,
    queue,
    seed,
    messages: loadMessageCount,
    producers: clients.slice(0, producers),
    consumers: clients.slice(producers),
  }
  const result = await runLoad(plan)
  t.same(await inconsistencies(pool), [])
  return { result, plan }
}

function everyMessageOnce(
  t: Test,
  plan: LoadPlan,
  { pushed, delivered, rejected }: LoadResult,
): void {
  const ids = [...delivered.values()].flat().map(({ id }) => id)
  const expected = new Set([...pushed.values()].flat())
  t.equal(expected.size, plan.messages, 'every push was answered')
  t.equal(ids.filter((id) => !expected.has(id)).length, 0, 'nothing came that was not pushed')
  t.equal(plan.messages - new Set(ids).size, 0, 'nothing is lost')
  t.equal(ids.length - new Set(ids).size, 0, 'nothing is doubled')
  t.equal(rejected, 0, 'every acknowledgement counted')
}

/** Checks that seqs came in order without a gap, and each producer's messages in the order it sent them. */
function inOrder(t: Test, { delivered }: LoadResult): void {
  const jumps: string[] = []
  for (const [partition, deliveries] of delivered) {
    const lastOf = new Map<number, number>()
    deliveries.forEach(({ seq, producer, n }, i) => {
      if (seq !== i + 1) jumps.push(`${partition}: seq ${seq} came as number ${i + 1}`)
      if (n <= (lastOf.get(producer) ?? -1))
        jumps.push(`${partition}: ${producer}'s ${n} came late`)
      lastOf.set(producer, n)
    })
  }
  t.same(jumps.slice(0, 5), [], 'in order')
}
