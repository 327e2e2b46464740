// `npm run bench -- roundtrip [--rate 100] [--seconds 10] [--warm-up 20] [--only base,ack-and-fetch,…] [--highest]
// [--floor]`:
// what one message to one waiting consumer costs. Nodes of two workers, embedded PostgreSQL and the load
// generator share this machine; single pushes come at a fixed rate far from saturation, consumers wait with
// `batch=1` and acknowledge each message. Prints counts and CPU per message, and, with `--highest`, the highest
// rate at which 99 of 100 messages arrive within 50 ms. With `--floor` it prints what the same requests, queries
// and IPC messages cost without Rouse. Exits with 1 if a limit is exceeded.
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startEmbeddedPostgres } from '@rouse/database'
import { Verdict } from '../support/figures.ts'
import { describe, type Figures, limitsOf } from './figures.ts'
import { describeFloor, measureFloor } from './floor.ts'
import { openScenario, type Scenario, scenarios } from './scenario.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const { values: flags } = parseArgs({
  options: {
    rate: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '10' },
    'warm-up': { type: 'string', default: '20' },
    only: { type: 'string', default: Object.keys(scenarios).join(',') },
    highest: { type: 'boolean', default: false },
    floor: { type: 'boolean', default: false },
  },
})
const [rate, seconds, warmUpSeconds] = [flags.rate, flags.seconds, flags['warm-up']].map(
  positive,
) as [number, number, number]
const p99MsMax = 50
const verdict = new Verdict()
for (const name of flags.only.split(',')) {
  const scenario = scenarios[name]
  if (scenario === undefined) {
    console.error(`unknown scenario ${name}; scenarios: ${Object.keys(scenarios).join(', ')}`)
    process.exit(2)
  }
  await runScenario(name, scenario)
}
process.exit(verdict.report(console.log))

async function runScenario(name: string, scenario: Scenario): Promise<void> {
  const server = await startEmbeddedPostgres({
    settings: { shared_buffers: '512MB', max_wal_size: '4GB' },
  })
  const warmUp = { rate: 2 * rate, seconds: warmUpSeconds }
  try {
    const figures = await measureScenario(name, scenario, server)
    if (!flags.floor) return
    console.log(describeFloor(await measureFloor(server, { rate, seconds }, warmUp), figures))
  } finally {
    await server.stop()
  }
}

async function measureScenario(
  name: string,
  scenario: Scenario,
  server: { readonly url: string; readonly pid: number },
): Promise<Figures> {
  const bench = await openScenario({ root, server, scenario })
  try {
    await bench.measure({ rate: 2 * rate, seconds: warmUpSeconds })
    const figures = await bench.measure({ rate, seconds })
    console.log(`\n${name}: ${scenario.description}\n${describe(figures, rate)}`)
    if (name === 'base' && rate === 100) verdict.check(limitsOf(figures))
    if (flags.highest)
      console.log(`  highest rate with p99 ≤ ${p99MsMax} ms: ${await highest(bench)}/s`)
    return figures
  } finally {
    await bench.stop()
  }
}

/** Grows by half until the limit is passed, then halves the gap twice. Each step must hold twice. */
async function highest(bench: Awaited<ReturnType<typeof openScenario>>): Promise<number> {
  const holds = async (tried: number): Promise<boolean> => {
    for (let i = 0; i < 2; i += 1) {
      const { p99Ms, perSecond } = await bench.measure({ rate: tried, seconds: 5 })
      if (p99Ms <= p99MsMax && perSecond >= 0.95 * tried) return true
    }
    return false
  }
  let [low, high] = [0, 200]
  while (await holds(high)) [low, high] = [high, Math.round(high * 1.5)]
  for (let i = 0; i < 3 && low > 0; i += 1) {
    const middle = Math.round((low + high) / 2)
    if (await holds(middle)) low = middle
    else high = middle
  }
  return low
}

function positive(text: string): number {
  const value = Number(text)
  if (value > 0 && Number.isFinite(value)) return value
  console.error(`not a positive number: ${text}`)
  process.exit(2)
}
