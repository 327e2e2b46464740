// Thousands of seeded schedules. To repeat one: ROUSE_SEED=1234 npx tap …
import { test } from 'tap'
import { type Sabotage, Simulation, type SimulationOptions } from './support/simulation.ts'

const given = process.env.ROUSE_SEED
const seedCount = 4_000
const lossySeedCount = 600

/** Returns the first seeds that break a rule, each with the rule. */
function failures(count: number, options: Omit<SimulationOptions, 'seed'> = {}): string[] {
  const seeds = given === undefined ? Array.from({ length: count }, (_, i) => i) : [Number(given)]
  const failed: string[] = []
  for (const seed of seeds) {
    const [first] = new Simulation({ seed, ...options }).run()
    if (first !== undefined) failed.push(`ROUSE_SEED=${seed}: ${first}`)
    if (failed.length === 5) break
  }
  return failed
}

test('no wake-up is lost in any order of events, without fallback polls', async (t) => {
  t.same(failures(seedCount), [])
})

test('no wake-up is lost when workers often pause and groups are removed early', async (t) => {
  t.same(failures(seedCount, { settings: { deliveryTimeoutMs: 100, groupLingerMs: 1 } }), [])
})

test('fallback polls find the messages of lost hints and failed pops', async (t) => {
  t.same(failures(lossySeedCount, { isLossy: true }), [])
})

test('the schedules reach every branch', { skip: given !== undefined }, async (t) => {
  const sums = {
    dirtied: 0,
    deliveryTimeouts: 0,
    late: 0,
    contended: 0,
    requests: 0,
    requestsSpared: 0,
  }
  const wakes = { local: 0, ipc: 0, udp: 0, timer: 0, chain: 0 }
  for (let seed = 0; seed < 500; seed += 1) {
    const simulation = new Simulation({ seed })
    simulation.run()
    const stats = simulation.manager.getStats()
    for (const name of Object.keys(sums) as (keyof typeof sums)[]) {
      sums[name] += stats.counters[name]
    }
    for (const name of Object.keys(wakes) as (keyof typeof wakes)[])
      wakes[name] += stats.wakes[name]
  }
  for (const [name, count] of Object.entries({ ...sums, ...wakes }))
    t.ok(count > 10, `${name} ${count}`)
})

const sabotages: readonly Sabotage[] = [
  'hint in flight dropped',
  'hint without waiters dropped',
  'death unreported',
  'unused as empty',
  'found count too high',
  'reserved waiters answered as unused',
  'delivered group gets a hint',
]

for (const sabotage of sabotages) {
  test(`the schedules detect a broken node: ${sabotage}`, {
    skip: given !== undefined,
  }, async (t) => {
    t.not(failures(seedCount, { sabotage }).length, 0)
  })
}
