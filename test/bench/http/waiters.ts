// The cost of waiters: CPU and queries of idle ones, memory and push latency with many of them.
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { familyCpuSeconds, familyPids } from '../support/family-cpu.ts'
import { percentile, percentiles, type Verdict } from '../support/figures.ts'
import type { BenchNode } from '../support/node.ts'
import { finished, onMessage, startLoad } from './load-process.ts'

export interface WaitersBench {
  readonly node: BenchNode
  readonly server: { readonly url: string; readonly pid: number }
  readonly verdict: Verdict
  readonly out: (line: string) => void
}

const settleMs = 12_000
const waitingMsMax = 60_000

export async function idle(
  { node, server, verdict, out }: WaitersBench,
  load: { readonly waiters: number; readonly groups: number; readonly seconds: number },
): Promise<void> {
  const { waiters, groups, seconds } = load
  const child = startLoad({ kind: 'wait', url: node.url, waiters, groups, pushes: 0 })
  const ended = finished(child)
  await onMessage(child, 'asked')
  await untilWaiting(node, waiters)
  // Wait until all first queries are counted: an idle session reports its counts ten seconds later.
  await delay(settleMs)
  const counter = new pg.Client({ connectionString: server.url })
  await counter.connect()
  // The transactions of autovacuum, up to forty in a minute, are not those of the node.
  await counter.query('alter system set autovacuum = off')
  await counter.query('select pg_reload_conf()')
  const before = {
    transactions: await transactions(counter),
    cpu: familyCpuSeconds(server.pid),
    nodeCpu: familyCpuSeconds(node.pid),
    at: performance.now(),
  }
  await delay(seconds * 1000)
  const took = (performance.now() - before.at) / 1000
  const perSecond = ((await transactions(counter)) - before.transactions) / took
  const cores = (familyCpuSeconds(server.pid) - before.cpu) / took
  const nodeCores = (familyCpuSeconds(node.pid) - before.nodeCpu) / took
  const { mode } = (await (await fetch(`${node.url}/stats`)).json()) as {
    mode: { mode: string; why: readonly string[] }
  }
  await untilWaiting(node, waiters) // checks that no waiter has ended
  await counter.query('alter system reset autovacuum')
  await counter.query('select pg_reload_conf()')
  await counter.end()
  child.send('enough')
  await ended
  out(
    `${waiters} idle waiters in ${groups} groups, ${seconds} s: ${perSecond.toFixed(2)} transactions/s, ` +
      `${cores.toFixed(4)} core of PostgreSQL (peer 0.21), ` +
      `${nodeCores.toFixed(4)} core of the node, ${[mode.mode, ...mode.why].join(' ')}`,
  )
  verdict.check([
    { what: 'transactions a second of an idle node', value: perSecond, max: 2 },
    { what: 'cores of PostgreSQL of an idle node', value: cores, max: 0.005 },
    { what: 'cores of an idle node', value: nodeCores, max: 0.02 },
  ])
}

export async function crowd({ node, verdict, out }: WaitersBench, waiters: number): Promise<void> {
  const child = startLoad({
    kind: 'wait',
    url: node.url,
    waiters,
    groups: 100,
    pushes: 200,
  })
  const ended = finished(child)
  await onMessage(child, 'asked')
  await untilWaiting(node, waiters)
  const megabytes = familyPids(node.pid).map(residentMegabytes)
  const total = megabytes.reduce((sum, mb) => sum + mb, 0)
  child.send('enough')
  const { wakesMs, pushesMs } = await ended
  out(`${waiters} waiters: ${megabytes.join(' + ')} = ${total} MB resident`)
  out(`  a push is answered: ${percentiles(pushesMs)}`)
  out(`  its message received: ${percentiles(wakesMs)}`)
  verdict.check([
    { what: `MB of a node with ${waiters} waiters`, value: total, max: 400 },
    { what: 'ms of a push with all waiters, median', value: percentile(pushesMs, 0.5), max: 20 },
    { what: 'ms of a wake-up with all waiters, median', value: percentile(wakesMs, 0.5), max: 20 },
  ])
}

/** Waits until all pops wait on the node; otherwise the bench would measure fewer waiters. */
async function untilWaiting(node: BenchNode, waiters: number): Promise<void> {
  const deadline = performance.now() + waitingMsMax
  for (;;) {
    const answer = await fetch(`${node.url}/stats`)
    // `waiting` is missing if the node was too busy to answer with its stats.
    const { waiting } = (await answer.json()) as { waiting?: { total: number } }
    if (waiting?.total === waiters) return
    if (performance.now() > deadline) throw new Error(`${waiting?.total} of ${waiters} wait`)
    await delay(100)
  }
}

/** Returns the number of transactions so far, in all databases. */
async function transactions(counter: pg.Client): Promise<number> {
  const { rows } = await counter.query<{ count: string }>(
    'select sum(xact_commit + xact_rollback) as count from pg_stat_database',
  )
  return Number(rows[0]?.count)
}

function residentMegabytes(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Math.round(Number(kilobytes?.[1]) / 1024)
}
