// Hundreds of runs of whole clusters, each determined by a seed. To repeat one: ROUSE_SEED=12 npx tap …
import { test } from 'tap'
import { measure, measureWakes } from './measurements.ts'
import { type Sabotage, Simulation, type SimulationOptions } from './simulation.ts'
import { missedTargets } from './targets.ts'

const given = process.env.ROUSE_SEED

/** Returns the first seeds that break a rule, each with the broken rules. */
function failures(
  count: number,
  options: Omit<SimulationOptions, 'seed'>,
  failedMax = 3,
): string[] {
  const seeds = given === undefined ? Array.from({ length: count }, (_, i) => i) : [Number(given)]
  const failed: string[] = []
  for (const seed of seeds) {
    const [first] = new Simulation({ seed, ...options }).run()
    if (first !== undefined) failed.push(`ROUSE_SEED=${seed}: ${first}`)
    if (failed.length === failedMax) break
  }
  return failed
}

test('a cluster of ten keeps every rule under all faults', async (t) => {
  t.same(failures(100, { nodeCount: 10 }), [])
})

test('a cluster of three keeps every rule under all faults', async (t) => {
  t.same(failures(50, { nodeCount: 3 }), [])
})

test('a cluster of thirty and one with real signatures keep every rule under all faults', async (t) => {
  t.same(failures(1, { nodeCount: 30, checkedMax: 5 }), [])
  t.same(failures(5, { nodeCount: 5, isSigned: true }), [])
})

test('the same seed gives the same run', { skip: given !== undefined }, async (t) => {
  const run = () => {
    const simulation = new Simulation({ seed: 7, nodeCount: 5 })
    simulation.run()
    return [simulation.network.datagrams, simulation.store.latenciesMs]
  }
  t.same(run(), run())
})

const sabotages: Readonly<Record<string, Sabotage>> = {
  'an interest that is withdrawn at once': { interestLingerMs: 0 },
  'members that stay alive without an echo': { suspectAfter: 60, deadAfter: 200, askAfter: 180 },
  'addresses that are tried once': { helloFirstMs: 10_000_000 },
  'hints that stay with the peer that got them first': { askMs: 10_000_000 },
  'hints that are settled without waiters': 'hints settled without waiters',
  'no fallback': 'no fallback',
  'losses that are not reported': 'losses unnoticed',
}

for (const [name, sabotage] of Object.entries(sabotages)) {
  test(`the rules detect a defect: ${name}`, { skip: given !== undefined }, async (t) => {
    t.not(failures(20, { nodeCount: 10, sabotage }, 1).length, 0)
  })
}

test('ten nodes meet their targets', { skip: given !== undefined }, async (t) => {
  for (const seed of [1, 2, 3]) {
    t.same(missedTargets(10, { measurements: measure(10, seed), wakes: [] }), [], `seed ${seed}`)
  }
})

test('in a lossy network nine of ten hints arrive at once, the rest soon', async (t) => {
  const wakes = (['one', 'all'] as const).map((spread) => {
    return { loss: 0.3, spread, ...measureWakes(0.3, 1, 2_000, spread) }
  })
  t.same(missedTargets(10, { measurements: measure(10, 1), wakes }), [])
})
