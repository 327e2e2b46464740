// Measures what tests do with shorter times: user transactions that stay open for half a minute, and how long
// aggressive mode lasts.
import pg from 'pg'
import { percentile, percentiles, type Verdict } from '../support/figures.ts'
import { HttpConnection, requestBytes } from '../support/http-connection.ts'
import type { BenchNode } from '../support/node.ts'

export interface LengthsBench {
  readonly node: BenchNode
  readonly server: { readonly url: string }
  readonly verdict: Verdict
  readonly out: (line: string) => void
}

const openMs = 30_000
/** The number of concurrent transactions. Each gives one sample of the time from COMMIT to delivery. */
const transactions = 20
const aggressiveMs = 60_000

export async function realLengths(bench: LengthsBench): Promise<void> {
  await openTransactions(bench)
  await wayOutOfAggressive(bench)
}

async function openTransactions({ node, server, verdict, out }: LengthsBench): Promise<void> {
  const users = await Promise.all(Array.from({ length: transactions }, () => connect(server.url)))
  for (const [i, user] of users.entries()) {
    await user.query('begin')
    await user.query(`select rouse.enqueue($1, '"enqueued"', partition => 'p')`, [`open-${i}`])
  }
  const besideMs = await pushAndPopBeside(node)
  out(`push and pop beside ${transactions} enqueues that stay open ${openMs / 1_000} s:`)
  out(`  push ${percentiles(besideMs.push)}`)
  out(`  pop  ${percentiles(besideMs.pop)}`)
  const deliveryMs: number[] = []
  for (const [i, user] of users.entries()) {
    deliveryMs.push(await commitToDelivery(node, user, `open-${i}`))
    await user.end()
  }
  deliveryMs.sort((a, b) => a - b)
  out(`COMMIT of an enqueue open ${openMs / 1_000} s to delivery: ${percentiles(deliveryMs)}`)
  verdict.check([
    // A call that waited for a transaction would take half a minute, or fail at a lock timeout of seconds.
    { what: 'ms of a push beside enqueues, max', value: percentile(besideMs.push, 1), max: 1_000 },
    { what: 'ms of a pop beside enqueues, max', value: percentile(besideMs.pop, 1), max: 1_000 },
    { what: 'ms from COMMIT to delivery, median', value: percentile(deliveryMs, 0.5), max: 10 },
  ])
}

/** Pushes and pops in the queue and partition of one of the open transactions, while it is open. */
async function pushAndPopBeside(node: BenchNode): Promise<{ push: number[]; pop: number[] }> {
  const connection = await HttpConnection.open(node.url)
  const items = [{ queue: 'open-0', partition: 'p', payload: 'beside' }]
  const push = requestBytes('POST', '/api/v1/push', JSON.stringify({ items }))
  const pop = requestBytes('GET', '/api/v1/pop/queue/open-0?autoAck=true')
  const tookMs = { push: [] as number[], pop: [] as number[] }
  const begun = performance.now()
  while (performance.now() - begun < openMs) {
    tookMs.push.push(await timed(connection, push, 201))
    tookMs.pop.push(await timed(connection, pop, 200))
    await pause(20)
  }
  connection.close()
  for (const list of Object.values(tookMs)) list.sort((a, b) => a - b)
  return tookMs
}

async function timed(connection: HttpConnection, request: Buffer, wanted: number): Promise<number> {
  const begun = performance.now()
  const { status } = await connection.request(request)
  if (status !== wanted) throw new Error(`answered with ${status} instead of ${wanted}`)
  return performance.now() - begun
}

async function commitToDelivery(node: BenchNode, user: pg.Client, queue: string): Promise<number> {
  const connection = await HttpConnection.open(node.url)
  const path = `/api/v1/pop/queue/${queue}?wait=true&timeout=5000&autoAck=true`
  const answer = connection.request(requestBytes('GET', path))
  await pause(50) // the pop has found nothing, and waits
  await user.query('commit')
  const committed = performance.now()
  const { status } = await answer
  const tookMs = performance.now() - committed
  connection.close()
  if (status !== 200) throw new Error('a waiter was not woken')
  return tookMs
}

/**
 * Ends the LISTEN connection, and measures how long the node stays in aggressive mode. The node reconnects. A
 * waiter is present all the time, because without waiters there is nothing to poll.
 */
async function wayOutOfAggressive({ node, server, verdict, out }: LengthsBench): Promise<void> {
  const waiter = new AbortController()
  const url = `${node.url}/api/v1/pop/queue/calm?wait=true&timeout=${3 * aggressiveMs}`
  const waiting = fetch(url, { signal: waiter.signal }).catch(() => undefined)
  await until(node, 'healthy', 2 * aggressiveMs)
  const user = await connect(server.url)
  await user.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name like '% listener'`,
  )
  await user.end()
  await until(node, 'aggressive', 10_000)
  const begun = performance.now()
  await until(node, 'healthy', 2 * aggressiveMs)
  const seconds = (performance.now() - begun) / 1_000
  waiter.abort()
  await waiting
  out(`aggressive after a lost LISTEN connection for ${seconds.toFixed(1)} s`)
  verdict.check([
    { what: 's that aggressive mode ended early', value: aggressiveMs / 1_000 - seconds, max: 0.5 },
    { what: 's of aggressive mode', value: seconds, max: aggressiveMs / 1_000 + 10 },
  ])
}

async function until(node: BenchNode, wanted: string, withinMs: number): Promise<void> {
  const begun = performance.now()
  for (;;) {
    const stats = (await (await fetch(`${node.url}/stats`)).json()) as { mode: { mode: string } }
    if (stats.mode.mode === wanted) return
    if (performance.now() - begun > withinMs) throw new Error(`the node is not ${wanted}`)
    await pause(50)
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
