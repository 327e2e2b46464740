// `npm run bench -- cluster [--trials N] [--only hint,wake,flood,loss,cut,one-way,death] [--json]`: two nodes
// and PostgreSQL in a separate network namespace, where datagrams can be dropped without affecting other
// processes. Measures the time from the response to a push on one node to the response to a waiter on the
// other node. `whole` begins when the push is sent. Exits with 1 if a limit is exceeded.
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { dropUdp, healUdp, privateNetworkMissing, runInPrivateNetwork } from '@rouse/testkit'
import { Verdict } from '../support/figures.ts'
import { type Death, dieAndReturn } from './death.ts'
import { startFlood } from './flood.ts'
import { hintLatencies } from './hints.ts'
import { benchCluster, type ClusterFigures, startBenchCluster } from './nodes.ts'

const { values: flags } = parseArgs({
  options: {
    trials: { type: 'string', default: '200' },
    only: { type: 'string', default: 'hint,wake,flood,loss,cut,one-way,death' },
    json: { type: 'boolean', default: false },
    inside: { type: 'boolean', default: false },
  },
})
if (!flags.inside) process.exit(runInside())

const trials = Number(flags.trials)
const parts = new Set(flags.only.split(','))
const verdict = new Verdict()
/** Limits in ms. The commit takes 1 to 4 ms of them. */
const wholeLimits = { wholeP50: 6, wholeP99: 20 }
const deaths = 5
const queryMsMax = 100
const results: Record<string, ClusterFigures> = {}
const cluster = await startBenchCluster()
const [a, b] = cluster.nodes
const bench = benchCluster(cluster)
try {
  // Warm up, so that the code is compiled as in a running node.
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const)
    await bench.wakes(from, to, trials / 2)
  if (parts.has('hint')) note('hint alone', await hintLatencies(trials), { p50: 0.5, p99: 3 })
  if (parts.has('wake')) {
    note('a → b', await bench.wakes(a, b, trials), wholeLimits)
    note('b → a', await bench.wakes(b, a, trials), wholeLimits)
  }
  if (parts.has('flood')) await flood()
  if (parts.has('loss')) await loss()
  if (parts.has('cut')) await cut()
  if (parts.has('one-way')) await oneWay()
  if (parts.has('death')) await death()
} finally {
  await cluster.stop()
}
if (flags.json) process.stdout.write(`${JSON.stringify(results)}\n`)
process.exit(flags.json ? 0 : verdict.report(out))

/** Sends forged gossip. The nodes must not accept any of it, and wake-ups must continue. */
async function flood(): Promise<void> {
  const before = results['a → b'] ?? (await bench.wakes(a, b, trials))
  const stop = await startFlood(b.gossip, 20_000, await cluster.overhear())
  const during = await bench.wakes(a, b, trials)
  const { sent, perSecond } = await stop()
  note(`a → b under ${perSecond} forged datagrams a second`, during, {
    p99: Math.max(20, 2 * before.p99),
  })
  const [{ gossip: sender }, { gossip: receiver, peers }] = [
    await bench.stats(a),
    await bench.stats(b),
  ]
  const refused = Object.values(receiver.drops).reduce((sum, count) => sum + count, 0)
  out(`  forged ${sent}, refused ${refused} (${JSON.stringify(receiver.drops)})`)
  verdict.check([
    { what: 'forged and not read', value: sent - (receiver.drops['mac'] ?? 0), max: sent / 2 },
    // Node b must have accepted only the datagrams of its one peer.
    {
      what: 'accepted datagrams that no peer sent',
      value: Math.max(0, receiver.datagramsReceived - refused - sender.datagramsSent),
      max: 0,
    },
    { what: 'peers of b', value: peers.length, max: 1 },
  ])
}

async function loss(): Promise<void> {
  dropUdp({ probability: 0.3 })
  const wakes = await bench.wakes(a, b, trials)
  healUdp()
  note('30 % loss, a → b', wakes, { max: 600 + queryMsMax })
  const late = 100 - wakes.within10Ms
  verdict.check([{ what: '30 % loss: % of wakes later than 10 ms', value: late, max: 10 }])
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
  dropUdp({ toPort: b.gossip.port })
  await bench.untilAggressive(b)
  note('b deaf, a → b', await bench.wakes(a, b, Math.ceil(trials / 10)), { max: 1_050 })
  note('b deaf, b → a', await bench.wakes(b, a, Math.ceil(trials / 10)), { p50: 20 })
  healUdp()
  await bench.untilHealthy()
}

/** Kills a node, waits for its detection, and restarts it. */
async function death(): Promise<void> {
  const took: Death[] = []
  for (let i = 0; i < deaths; i += 1) {
    await bench.untilHealthy()
    took.push(await dieAndReturn(b, a))
  }
  await bench.untilHealthy()
  const worst = (name: keyof Death): number => Math.max(...took.map((one) => one[name]))
  out(
    `${deaths} deaths of b: suspect after ${worst('suspectMs')} ms at most, dead after ${worst('deadMs')}, ` +
      `heard again ${worst('rejoinedMs')} ms after it bound its socket`,
  )
  verdict.check([
    { what: 'ms until a killed node is dead', value: worst('deadMs'), max: 5_500 },
    { what: 'ms until a restarted node is heard', value: worst('rejoinedMs'), max: 500 },
  ])
}

function note(what: string, figures: ClusterFigures, limits: Partial<ClusterFigures>): void {
  results[what] = figures
  const { p50, p99, max, within10Ms, pushP50, wholeP50, wholeP99, sources } = figures
  const whole =
    wholeP50 === undefined
      ? ''
      : `; whole p50 ${wholeP50} ms (push ${pushP50}), p99 ${wholeP99} ms; `
  out(
    `${what}: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms, ${within10Ms} % within 10 ms${whole}${sources}`,
  )
  for (const [name, limit] of Object.entries(limits)) {
    verdict.check([
      {
        what: `${what}: ${name}`,
        value: Number(figures[name as keyof ClusterFigures]),
        max: Number(limit),
      },
    ])
  }
}

function out(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** Runs this program again in a network namespace that has only a loopback interface. */
function runInside(): number {
  const missing = privateNetworkMissing()
  if (missing !== false) {
    out(missing)
    return 1
  }
  const self = fileURLToPath(import.meta.url)
  const command = [process.execPath, '--import', 'tsx', self, '--inside', ...process.argv.slice(2)]
  return runInPrivateNetwork(command, 'inherit').status ?? 1
}
