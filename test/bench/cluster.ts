// `npm run bench -- cluster [--trials N] [--only wake,flood,loss,cut,one-way,hint] [--json]`: two nodes and PostgreSQL in a
// network of their own, where datagrams can be lost without harm to anybody else. From the answer of a push on one node
// to the answer of a waiter on the other. Ends with 1 where a figure that must hold does not.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startFlood } from './cluster-flood.ts'
import { hintLatencies } from './cluster-hints.ts'
import { dropUdp, healUdp } from './cluster-network.ts'
import { benchCluster, type ClusterFigures, startBenchCluster } from './cluster-nodes.ts'
import { Verdict } from './http-figures.ts'

const { values: flags } = parseArgs({
  options: {
    trials: { type: 'string', default: '200' },
    only: { type: 'string', default: 'wake,flood,loss,cut,one-way,hint' },
    json: { type: 'boolean', default: false },
    inside: { type: 'boolean', default: false },
  },
})
if (!flags.inside) process.exit(runInside())

const trials = Number(flags.trials)
const parts = new Set(flags.only.split(','))
const verdict = new Verdict()
const results: Record<string, ClusterFigures> = {}
const cluster = await startBenchCluster()
const [a, b] = cluster.nodes
const bench = benchCluster(cluster)
try {
  if (parts.has('hint')) note('hint alone', await hintLatencies(trials), { p50: 0.5, p99: 3 })
  if (parts.has('wake')) {
    note('a → b', await bench.wakes(a, b, trials), { p50: 6, p99: 20 })
    note('b → a', await bench.wakes(b, a, trials), { p50: 6, p99: 20 })
  }
  if (parts.has('flood')) await flood()
  if (parts.has('loss')) await loss()
  if (parts.has('cut')) await cut()
  if (parts.has('one-way')) await oneWay()
} finally {
  await cluster.stop()
}
if (flags.json) process.stdout.write(`${JSON.stringify(results)}\n`)
process.exit(flags.json ? 0 : verdict.tell(out))

/** Strangers send what only looks like gossip: none of it is believed, and wakes go on. */
async function flood(): Promise<void> {
  const before = results['a → b'] ?? (await bench.wakes(a, b, trials))
  const stop = await startFlood(b.gossip, 20_000, await cluster.overhear())
  const during = await bench.wakes(a, b, trials)
  const { sent, perSecond } = await stop()
  note(`a → b under ${perSecond} forged datagrams a second`, during, {
    p99: Math.max(20, 2 * before.p99),
  })
  const { drops } = (await bench.stats(b)).gossip
  const refused = Object.values(drops).reduce((sum, count) => sum + count, 0)
  out(`  forged ${sent}, refused ${refused} (${JSON.stringify(drops)})`)
  verdict.check([
    {
      what: 'forged and not refused by signature',
      value: sent - (drops['mac'] ?? 0),
      max: sent / 2,
    },
  ])
  verdict.check([{ what: 'peers of b', value: (await bench.stats(b)).peers.length, max: 1 }])
}

async function loss(): Promise<void> {
  dropUdp({ probability: 0.3 })
  const wakes = await bench.wakes(a, b, trials)
  healUdp()
  note('30 % loss, a → b', wakes, { max: 1_000 })
  const late = 100 - wakes.within10Ms
  verdict.check([{ what: '30 % loss: % of wakes later than 10 ms', value: late, max: 20 }])
  await bench.untilHealthy()
}

async function cut(): Promise<void> {
  dropUdp({})
  await bench.untilAggressive()
  note('no UDP, a → b', await bench.wakes(a, b, Math.ceil(trials / 10)), { max: 1_050 })
  healUdp()
  await bench.untilHealthy()
  note('healed, a → b', await bench.wakes(a, b, Math.ceil(trials / 4)), { p50: 6 })
}

async function oneWay(): Promise<void> {
  dropUdp({ toPort: b.gossipPort })
  await bench.untilAggressive(b)
  note('b deaf, a → b', await bench.wakes(a, b, Math.ceil(trials / 10)), { max: 1_050 })
  note('b deaf, b → a', await bench.wakes(b, a, Math.ceil(trials / 10)), { p50: 20 })
  healUdp()
  await bench.untilHealthy()
}

function note(what: string, figures: ClusterFigures, limits: Partial<ClusterFigures>): void {
  results[what] = figures
  const { p50, p99, max, within10Ms, sources } = figures
  out(
    `${what}: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms, ${within10Ms} % within 10 ms ${sources}`,
  )
  for (const [name, limit] of Object.entries(limits)) {
    verdict.check([
      { what: `${what}: ${name}`, value: Number(figures[name as 'p50']), max: Number(limit) },
    ])
  }
}

function out(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** Again, in a network namespace that has nothing but a loopback. */
function runInside(): number {
  const self = fileURLToPath(import.meta.url)
  const command = [process.execPath, '--import', 'tsx', self, '--inside', ...process.argv.slice(2)]
  const { status, error } = spawnSync('unshare', ['-n', '--', ...command], { stdio: 'inherit' })
  if (error === undefined) return status ?? 1
  process.stderr.write(`a network namespace is needed: ${error.message}\n`)
  return 1
}
