// Thousands of schedules, each decided by a seed. To see one again: ROUSE_SEED=1234 npx tap …
import { test } from 'tap'
import { type Sabotage, Simulation, type SimulationOptions } from './support/simulation.ts'

const given = process.env.ROUSE_SEED
const seedCount = 4_000
const lossySeedCount = 600

/** The first seeds that break a rule, with what they broke. */
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

test('no wake is lost, whatever the order, without any fallback check', async (t) => {
  t.same(failures(seedCount), [])
})

test('the same holds where workers often sleep and groups are soon forgotten', async (t) => {
  t.same(failures(seedCount, { settings: { deliveryTimeoutMs: 100, groupLingerMs: 1 } }), [])
})

test('with hints lost and pops failing, fallback checks find the rest', async (t) => {
  t.same(failures(lossySeedCount, { isLossy: true }), [])
})

test('the schedules reach every corner', { skip: given !== undefined }, async (t) => {
  const sums = { dirtied: 0, deliveryTimeouts: 0, late: 0, contended: 0, requests: 0 }
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
  'death untold',
  'unused as empty',
  'more found than was',
]

for (const sabotage of sabotages) {
  test(`the schedules would notice: ${sabotage}`, { skip: given !== undefined }, async (t) => {
    t.not(failures(seedCount, { sabotage }).length, 0)
  })
}
