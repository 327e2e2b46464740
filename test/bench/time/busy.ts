// How late a scheduled message enters the log of a partition that producers keep locked most of the time.
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { percentile, percentiles, type Verdict } from '../support/figures.ts'
import { HttpConnection, requestBytes } from '../support/http-connection.ts'
import type { BenchNode } from '../support/node.ts'

export interface BusyBench {
  readonly node: BenchNode
  readonly server: { readonly url: string }
  readonly verdict: Verdict
  readonly out: (line: string) => void
  readonly spanMs: number
}

const producers = 32

export async function busyPartition(bench: BusyBench): Promise<void> {
  const { verdict, out } = bench
  for (const perPush of [1, 100]) {
    const lateMs = await lateness(bench, `busy-${perPush}`, perPush)
    out(
      `enqueue to log, ${producers} producers of ${perPush} in one partition: ${percentiles(lateMs)}`,
    )
    verdict.check([
      {
        what: `ms late into a busy partition (${perPush} a push), p99`,
        value: percentile(lateMs, 0.99),
        max: 250,
      },
    ])
  }
}

async function lateness(
  { node, server, spanMs }: BusyBench,
  queue: string,
  perPush: number,
): Promise<number[]> {
  const endAt = performance.now() + spanMs
  const pushing = Promise.all(
    Array.from({ length: producers }, () => produce(node, queue, perPush, endAt)),
  )
  const user = new pg.Client({ connectionString: server.url })
  await user.connect()
  const enqueued = new Map<string, number>()
  while (performance.now() < endAt) {
    const { rows } = await user.query<{ id: string; at: number }>(
      'select rouse.enqueue($1, $2) as id, extract(epoch from clock_timestamp())::float8 * 1000 as at',
      [queue, '"scheduled"'],
    )
    for (const { id, at } of rows) enqueued.set(id, at)
    await pause(20)
  }
  await pushing
  const lateMs: number[] = []
  while (lateMs.length < enqueued.size) {
    lateMs.length = 0
    const { rows } = await user.query<{ id: string; at: number }>(
      `select id, extract(epoch from created_at)::float8 * 1000 as at from rouse.messages where id = any ($1)`,
      [[...enqueued.keys()]],
    )
    for (const { id, at } of rows) lateMs.push(at - (enqueued.get(id) ?? Number.NaN))
  }
  await user.end()
  return lateMs.sort((a, b) => a - b)
}

async function produce(
  node: BenchNode,
  queue: string,
  perPush: number,
  endAt: number,
): Promise<void> {
  const connection = await HttpConnection.open(node.url)
  const items = Array.from({ length: perPush }, () => ({ queue, payload: 'x'.repeat(200) }))
  const request = requestBytes('POST', '/api/v1/push', JSON.stringify({ items }))
  while (performance.now() < endAt) {
    const { status } = await connection.request(request)
    if (status !== 201) throw new Error(`a push was answered with ${status}`)
  }
  connection.close()
}
