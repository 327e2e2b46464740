// `npm run bench -- recovery [--kills N]`: the cost of a node's death. Three nodes with two workers each have
// a steady load. All processes of one node are killed while its consumers hold leases. Consumers on the other
// nodes wait for the leased messages.
//
//   leases     the time from the end of each lease of the killed node until its message is redelivered
//   slow       the longest time during which requests to the other nodes took more than twice as long as
//              before the kill. It is measured by the medians of 250 ms windows; the worst of both nodes and
//              both kinds of request counts. To show the noise of the machine, the bench also compares the
//              period before the kill with the period before that one.
//   rejoin     the time from the start of the killed node until it accepts requests, and until all nodes hear
//              each other
//
// The killed node stays down while the others are measured: its start uses a core that the other nodes need
// here, but not in production.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createPool } from '@rouse/database'
import { eventually } from '@rouse/testkit'
import { aligned } from '../../chaos/checkers/summary.ts'
import { httpTransport } from '../../chaos/clients/http-transport.ts'
import { RawClient } from '../../chaos/clients/raw-client.ts'
import { type ChaosCluster, startChaosCluster } from '../../chaos/cluster/chaos-cluster.ts'
import type { ChaosNode } from '../../chaos/cluster/chaos-node.ts'
import { untilAllHear } from '../../chaos/cluster/healing.ts'
import { monotonicMs } from '../../chaos/history/clock.ts'
import {
  longestAbove,
  medianMs,
  type Timed,
  windowMedians,
} from '../../chaos/history/slow-windows.ts'
import { percentile, Verdict } from '../support/figures.ts'
import { firstLeases, holdLeases, leaseSeconds, startWaiters } from './leases.ts'
import { operations, pass, type RecoveryLoad, startRecoveryLoad } from './load.ts'

const { values: flags } = parseArgs({ options: { kills: { type: 'string', default: '10' } } })
const kills = Number(flags.kills)
const leases = 40
const leasesOverMs = 2_000
const waitersPerNode = 8
const settleMs = 3_000
/** The periods before and after the kill are equal: a longer one has a longer worst case by chance. */
const aftermathMs = 8_000
const calmMs = aftermathMs
const windowMs = 250
const slowFactor = 2
const patience = { timeoutMs: 120_000, intervalMs: 50 }

const leaseLateMsMax = 1_000
const slowMsMax = 1_000

interface Figures {
  readonly node: string
  /** For each lease, sorted: the time from its end to the redelivery. */
  readonly lateMs: readonly number[]
  readonly usualMs: readonly number[]
  readonly worstMs: readonly number[]
  readonly noiseMs: number
  readonly slowMs: number
  readonly failed: number
  readonly readyMs: number
  readonly heardMs: number
}

const folder = await mkdtemp(join(tmpdir(), 'rouse-recovery-'))
const cluster = await startChaosCluster({
  folder,
  standby: 'none',
  faultyDisk: false,
  log: () => {},
  // Aggressive mode is short, so that it ends before the next kill is measured.
  nodeEnv: { AGGRESSIVE_POLL_DURATION_MS: '1000' },
})
const pool = createPool({ url: cluster.postgres.url, max: 1, applicationName: 'bench' })
const transport = httpTransport()
const clients = cluster.nodes.map(
  ({ url }) => new RawClient(url, transport, new AbortController().signal),
)
const load = startRecoveryLoad(clients)
const all: Figures[] = []
try {
  while (all.length < kills) all.push(await killOne(all.length % cluster.nodes.length))
} finally {
  await load.stop()
  transport.close()
  await pool.end()
  await cluster.stop()
  await rm(folder, { recursive: true, force: true })
}
tell(all)
process.exitCode = judge(all)

async function killOne(index: number): Promise<Figures> {
  const node = cluster.nodes[index] as ChaosNode
  const others = clients.filter((_, i) => i !== index)
  const queue = `leased-${all.length}`
  await untilHealthy(cluster)
  await pass(settleMs + 2 * calmMs - leasesOverMs)
  await holdLeases(clients[index] as RawClient, { queue, count: leases, overMs: leasesOverMs })
  const waiters = startWaiters(others, { queue, perNode: waitersPerNode })
  await untilWaiting(cluster.nodes.filter((one) => one !== node))

  node.hold()
  const killedAt = monotonicMs()
  await node.kill()
  const endsAt = await firstLeases(pool, queue)
  await pass(killedAt + aftermathMs - monotonicMs())
  await eventually(() => [...endsAt.keys()].every((key) => waiters.cameAt.has(key)), patience)
  await waiters.stop()

  const startedAt = monotonicMs()
  node.release()
  await node.untilReady(patience.timeoutMs)
  const readyMs = monotonicMs() - startedAt
  await untilAllHear(cluster.nodes)
  return {
    node: node.id,
    lateMs: [...endsAt]
      .map(([partition, at]) => (waiters.cameAt.get(partition) ?? 0) - at)
      .toSorted((a, b) => a - b),
    ...slowness(load, index, killedAt),
    readyMs,
    heardMs: monotonicMs() - startedAt,
  }
}

/** Compares, for each other node and kind of request, the times before and after the kill. */
function slowness({ done }: RecoveryLoad, killed: number, killedAt: number) {
  const [before, until] = [killedAt - 2 * calmMs, killedAt + aftermathMs]
  const near = done.filter(({ node, end }) => node !== killed && end >= before && end < until)
  const series = cluster.nodes.flatMap((_, node) =>
    operations.map((operation) =>
      near.filter((one) => one.node === node && one.operation === operation),
    ),
  )
  const compared = series
    .filter((timed) => timed.length > 0)
    .map((timed) => compare(timed, killedAt))
  return {
    usualMs: compared.map(({ usualMs }) => usualMs),
    worstMs: compared.map(({ worstMs }) => worstMs),
    noiseMs: Math.max(...compared.map(({ noiseMs }) => noiseMs)),
    slowMs: Math.max(...compared.map(({ slowMs }) => slowMs)),
    failed: near.filter(({ ok }) => !ok).length,
  }
}

function compare(timed: readonly Timed[], killedAt: number) {
  const calmAt = killedAt - calmMs
  const medianOf = (from: number, until: number): number =>
    medianMs(timed.filter(({ end }) => end >= from && end < until)) ?? Number.NaN
  const windows = (from: number, until: number) => windowMedians(timed, { from, until, windowMs })
  const beforeMs = medianOf(calmAt - calmMs, calmAt)
  const usualMs = medianOf(calmAt, killedAt)
  const after = windows(killedAt, killedAt + aftermathMs)
  return {
    usualMs,
    worstMs: Math.max(...after.map((median) => median ?? 0)),
    noiseMs: longestAbove(windows(calmAt, killedAt), slowFactor * beforeMs, windowMs),
    slowMs: longestAbove(after, slowFactor * usualMs, windowMs),
  }
}

/** Resolves when all nodes hear each other and none is in aggressive mode. */
async function untilHealthy({ nodes }: ChaosCluster): Promise<void> {
  await eventually(async () => {
    const stats = await Promise.all(nodes.map((node) => node.stats()))
    return stats.every(({ mode }) => mode.mode === 'healthy')
  }, patience)
}

async function untilWaiting(nodes: readonly ChaosNode[]): Promise<void> {
  await eventually(async () => {
    const stats = await Promise.all(nodes.map((node) => node.stats()))
    return stats.every(({ waiting }) => waiting.total === waitersPerNode)
  }, patience)
}

function tell(figures: readonly Figures[]): void {
  const head = ['killed', 'leases', 'back after their end', 'usual request', 'worst window']
  const rest = ['slow in a row', 'and in the calm', 'failed', 'ready again', 'heard again']
  const rows = figures.map((one) => [
    one.node,
    String(one.lateMs.length),
    `median ${percentile(one.lateMs, 0.5)} ms, max ${percentile(one.lateMs, 1)} ms`,
    range(one.usualMs),
    range(one.worstMs),
    `${one.slowMs} ms`,
    `${one.noiseMs} ms`,
    String(one.failed),
    `${(one.readyMs / 1_000).toFixed(1)} s`,
    `${(one.heardMs / 1_000).toFixed(1)} s`,
  ])
  console.log(aligned([[...head, ...rest], ...rows]))
  const late = figures.flatMap(({ lateMs }) => lateMs).toSorted((a, b) => a - b)
  console.log(
    `${figures.length} kills, ${late.length} leases of ${leaseSeconds} s: back ${percentile(late, 0.5)} ms after their end (median), ` +
      `${percentile(late, 0.99)} ms (p99), ${percentile(late, 1)} ms (max); others slow for ` +
      `${Math.max(...figures.map(({ slowMs }) => slowMs))} ms in a row at most, ` +
      `${Math.max(...figures.map(({ noiseMs }) => noiseMs))} ms without a kill`,
  )
}

function judge(figures: readonly Figures[]): number {
  const verdict = new Verdict()
  for (const [i, { node, lateMs, slowMs, failed }] of figures.entries()) {
    const what = `kill ${i + 1}, ${node}`
    verdict.check([
      {
        what: `${what}: ms after a lease's end`,
        value: lateMs.at(-1) ?? Number.NaN,
        max: leaseLateMsMax,
      },
      { what: `${what}: leases ended early`, value: lateMs.filter((ms) => ms < 0).length, max: 0 },
      { what: `${what}: ms in a row that others were slow`, value: slowMs, max: slowMsMax },
      { what: `${what}: requests to others that failed`, value: failed, max: 0 },
    ])
  }
  return verdict.report(console.log)
}

function range(ms: readonly number[]): string {
  return `${Math.min(...ms).toFixed(1)} to ${Math.max(...ms).toFixed(1)} ms`
}
