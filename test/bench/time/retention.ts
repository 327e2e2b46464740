// How much the removal of a million consumed messages slows down concurrent pushes and pops.
import pg from 'pg'
import { percentile, percentiles, type Verdict } from '../support/figures.ts'
import { HttpConnection, requestBytes } from '../support/http-connection.ts'
import type { BenchNode } from '../support/node.ts'

export interface RetentionBench {
  readonly node: BenchNode
  readonly server: { readonly url: string }
  readonly verdict: Verdict
  readonly out: (line: string) => void
  readonly messages: number
}

const partitions = 100
const perRequest = 20
/** At twenty messages per request, this is two thousand messages a second. */
const requestsPerSecond = 100
const quietSeconds = 10

export async function retentionUnderLoad(bench: RetentionBench): Promise<void> {
  const { node, server, verdict, out, messages } = bench
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query(`update rouse.chores set next_at = 'infinity' where name = 'retention'`)
  const each = Math.ceil(messages / partitions)
  await fill(client, each)
  const flow = await startFlow(node)
  await flow.measure(2_000) // warm-up
  const quiet = await flow.measure(quietSeconds * 1_000)
  const begun = performance.now()
  await client.query(
    `update rouse.chores set next_at = now(), position = 0 where name = 'retention'`,
  )
  const busy: number[] = []
  let left = messages
  while (left > 0) {
    busy.push(...(await flow.measure(1_000)))
    left = await countOld(client, each)
    if (performance.now() - begun > 110_000) break
  }
  const seconds = (performance.now() - begun) / 1_000
  await flow.stop()
  const { rows } = await client.query('select count(*)::int as n from rouse.messages')
  await client.end()
  busy.sort((a, b) => a - b)
  out(`push of ${perRequest} at ${requestsPerSecond * perRequest}/s: ${percentiles(quiet)}`)
  out(
    `the same while retention takes ${messages - left} messages in ${seconds.toFixed(0)} s: ${percentiles(busy)}`,
  )
  const flowed = Math.ceil((seconds + quietSeconds + 5) * requestsPerSecond * perRequest)
  verdict.check([
    { what: 'old messages left', value: left, max: 0 },
    { what: 'messages left in the table', value: Number(rows[0]?.n), max: flowed },
    {
      what: 'ms of a push during retention, p99',
      value: percentile(busy, 0.99),
      max: 2 * percentile(quiet, 0.99),
    },
  ])
}

/** Fills the log as if the messages had been pushed, popped and acknowledged two days ago. */
async function fill(client: pg.Client, each: number): Promise<void> {
  const names = Array.from({ length: partitions }, (_, i) => `p${i}`)
  await client.query(
    `select * from rouse.push(array_fill('kept'::text, array[$1::int]), $2::text[],
       (select array_agg(n) from generate_series(1, $1) n),
       (select array_agg(gen_random_uuid()) from generate_series(1, $1)),
       array_fill('0'::text, array[$1::int]))`,
    [partitions, names],
  )
  await client.query(`
    insert into rouse.groups (queue_id, name, created_at, last_seen_at)
    select id, '__QUEUE_MODE__', now(), now() from rouse.queues where name = 'kept'`)
  await client.query(
    `insert into rouse.messages (partition_id, seq, id, created_at, payload)
     select p.id, p.head + n, gen_random_uuid(), now() - interval '2 days', $2
     from rouse.partitions p join rouse.queues q on q.id = p.queue_id, generate_series(0, $1 - 1) n
     where q.name = 'kept'`,
    [each, JSON.stringify({ text: 'x'.repeat(189) })],
  )
  await client.query(`
    update rouse.messages m set created_at = now() - interval '2 days'
    from rouse.partitions p join rouse.queues q on q.id = p.queue_id
    where q.name = 'kept' and m.partition_id = p.id and m.seq = 1`)
  await client.query(
    `update rouse.partitions p set head = p.head + $1 from rouse.queues q where q.id = p.queue_id and q.name = 'kept'`,
    [each],
  )
  await client.query(`
    insert into rouse.lanes (partition_id, group_id, next, ready)
    select p.id, g.id, p.head, false from rouse.partitions p join rouse.groups g on g.queue_id = p.queue_id
    join rouse.queues q on q.id = p.queue_id where q.name = 'kept'`)
  await client.query('vacuum analyze rouse.messages')
}

/** Each partition starts with the same number of old messages, so its first seq shows how many are left. */
async function countOld(client: pg.Client, each: number): Promise<number> {
  const { rows } = await client.query(
    `select sum(greatest(0, $1 + 2 - (select min(m.seq) from rouse.messages m where m.partition_id = p.id)))::float8 as n
     from rouse.partitions p join rouse.queues q on q.id = p.queue_id where q.name = 'kept'`,
    [each],
  )
  return Number(rows[0]?.n)
}

/** Pushes at a fixed rate to the partitions under retention, and consumes what it pushes. */
async function startFlow(node: BenchNode) {
  let tookMs: number[] = []
  let isStopped = false
  const payload = { text: 'x'.repeat(189) }
  const bodies = Array.from({ length: 50 }, (_, at) => {
    const items = Array.from({ length: perRequest }, (_unused, i) => {
      return { queue: 'kept', partition: `p${(at * perRequest + i) % partitions}`, payload }
    })
    return requestBytes('POST', '/api/v1/push', JSON.stringify({ items }))
  })
  const free = await Promise.all(Array.from({ length: 32 }, () => HttpConnection.open(node.url)))
  let sent = 0
  const begun = performance.now()
  const timer = setInterval(() => {
    const wanted = ((performance.now() - begun) / 1_000) * requestsPerSecond
    for (; sent < wanted; sent += 1) {
      const connection = free.pop()
      if (connection === undefined) return
      const at = performance.now()
      void connection.request(bodies[sent % bodies.length] as Buffer).then(({ status }) => {
        if (status !== 201) throw new Error(`a push was answered with ${status}`)
        tookMs.push(performance.now() - at)
        free.push(connection)
      })
    }
  }, 5)
  const pop = requestBytes(
    'GET',
    '/api/v1/pop/queue/kept?wait=true&timeout=1000&batch=200&partitions=100&autoAck=true',
  )
  const consumers = Array.from({ length: 2 }, async () => {
    const connection = await HttpConnection.open(node.url)
    while (!isStopped) await connection.request(pop)
    connection.close()
  })
  return {
    /** Returns the durations of all pushes of the next `ms` milliseconds, sorted. */
    async measure(ms: number): Promise<number[]> {
      tookMs = []
      await new Promise((resolve) => setTimeout(resolve, ms))
      return [...tookMs].sort((a, b) => a - b)
    },
    async stop(): Promise<void> {
      clearInterval(timer)
      isStopped = true
      await Promise.all(consumers)
      for (const connection of free) connection.close()
    },
  }
}
