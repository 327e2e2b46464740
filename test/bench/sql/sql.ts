// `npm run bench -- sql [--seconds S]`: the cost of the SQL functions without HTTP. All results come from one
// run on one fresh server with durable commits: messages per second as seen by the client, and PostgreSQL's
// CPU per message. One Node process uses four connections unless the name of the case says otherwise. Four
// connections that push into the same partition, or the same hundred partitions, wait for each other's
// commits. The cases with one connection show the cost of a single call.
import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { createPool, migrate, startEmbeddedPostgres } from '@rouse/database'
import { ack, configure, type Executor, type NewMessage, pop, push } from '@rouse/storage'
import pg from 'pg'
import { familyCpuSeconds } from '../support/family-cpu.ts'

const { values: flags } = parseArgs({ options: { seconds: { type: 'string', default: '3' } } })
const secondsPerCase = Number(flags.seconds)

const server = await startEmbeddedPostgres({
  settings: {
    shared_buffers: '512MB',
    max_wal_size: '4GB',
    checkpoint_timeout: '15min',
    // Autovacuum after one case would count as a cost of the next. Instead, every case starts with a vacuum.
    autovacuum: 'off',
  },
})
const payload = JSON.stringify({ text: 'x'.repeat(189) }) // 200 bytes
const out = (line: string): void => void process.stdout.write(`${line}\n`)
interface Figures {
  readonly perSecond: number
  readonly cpuUs: number
}
const results = new Map<string, Figures>()

try {
  await migrate({ url: server.url })
  out(
    `200-byte messages, durable commits, client and PostgreSQL on the same machine, ${secondsPerCase} s a case`,
  )
  out('case'.padEnd(52) + 'msg/s'.padStart(10) + 'PG µs/msg'.padStart(12) + 'ms/call'.padStart(10))
  await baseline(1, 1)
  await baseline(1)
  await baseline(10)
  await baseline(100)
  await baseline(1000)
  await pushCase({ batch: 1, partitions: 1, connections: 1 })
  await pushCase({ batch: 100, partitions: 100, connections: 1 })
  for (const partitions of [1, 100]) {
    for (const batch of [1, 10, 100, 1000]) await pushCase({ batch, partitions })
  }
  await pushCase({ batch: 100, partitions: 1, keyed: true })
  await pushCase({ batch: 100, partitions: 100, keyed: true })
  await pushCase({ batch: 100, partitions: 1, connections: 6 })
  for (const batch of [1, 10, 100]) await popCase({ batch })
  await popCase({ batch: 100, pinned: true })
  await popCase({ batch: 1, pinned: true })
  for (const waiters of [1, 3]) await independentCase(waiters)
  const own = results.get(pushName({ batch: 100, partitions: 1 }))
  const bare = results.get('baseline: plain insert, 100 a call')
  if (own === undefined || bare === undefined) throw new Error('a case did not run')
  const ratio = own.cpuUs / bare.cpuUs
  out(
    `push at 100 a call costs ${ratio.toFixed(2)} times the plain insert's PostgreSQL CPU (limit 2.5)`,
  )
  if (ratio > 2.5) process.exitCode = 1
} finally {
  await server.stop()
}

interface PushCase {
  readonly batch: number
  readonly partitions: number
  readonly keyed?: boolean
  readonly connections?: number
}

function pushName({ batch, partitions, keyed, connections }: PushCase): string {
  const extras = `${keyed ? ', transaction ids' : ''}${connectionsName(connections)}`
  return `push ${batch} a call, ${partitions} partition${partitions > 1 ? 's' : ''}${extras}`
}

function connectionsName(connections: number | undefined): string {
  if (connections === undefined) return ''
  return `, ${connections} connection${connections > 1 ? 's' : ''}`
}

async function pushCase(options: PushCase): Promise<void> {
  const queue = randomUUID()
  let made = 0
  const items = (): NewMessage[] =>
    Array.from({ length: options.batch }, () => {
      made += 1
      const partition = `p${made % options.partitions}`
      const id = randomUUID()
      return { queue, partition, id, payload, ...(options.keyed && { transactionId: id }) }
    })
  await measure(pushName(options), options.connections ?? 4, options.batch, async (client) => {
    await push(client, items())
    return options.batch
  })
}

/**
 * Measures a plain insert of the same number of rows: one prepared multi-row VALUES, into a table with an id
 * and a payload.
 */
async function baseline(batch: number, connections?: number): Promise<void> {
  const places = Array.from({ length: batch }, (_, i) => `($${i * 2 + 1}::uuid, $${i * 2 + 2})`)
  const text = `insert into public.bare (id, payload) values ${places.join(', ')}`
  await withClient(async (client) => {
    await client.query('drop table if exists public.bare')
    await client.query(
      'create table public.bare (seq bigint generated always as identity primary key, id uuid, payload text)',
    )
  })
  const name = `baseline: plain insert, ${batch} a call${connectionsName(connections)}`
  await measure(name, connections ?? 4, batch, async (client) => {
    const values: string[] = []
    for (let i = 0; i < batch; i += 1) values.push(randomUUID(), payload)
    await (client as pg.Client).query({ name: `bare${batch}`, text, values })
    return batch
  })
}

async function popCase({
  batch,
  pinned = false,
}: {
  batch: number
  pinned?: boolean
}): Promise<void> {
  const queue = randomUUID()
  const backlog = Math.min(400_000, batch * 4_000 * secondsPerCase)
  await withClient(async (client) => {
    await configure(client, { queue, options: {} })
    for (let sent = 0; sent < backlog; sent += 1000) {
      const items = Array.from({ length: 1000 }, (_, i) => ({
        queue,
        partition: `p${i % 100}`,
        id: randomUUID(),
        payload,
      }))
      await push(client, items)
    }
  })
  const idler = pinned ? await pinXmin() : undefined
  let after = '0'
  await measure(
    `pop + ack ${batch} a call, 100 partitions${pinned ? ', xmin pinned' : ''}`,
    4,
    batch,
    async (client) => {
      const demands = [{ batch, partitions: 1, holder: 'bench' }]
      const { leases } = await pop(client, { source: { queue }, group: 'g', demands, after })
      let count = 0
      for (const lease of leases) {
        after = lease.partitionId
        count += lease.messages.length
        const { rejected } = await ack(client, [{ leaseId: lease.leaseId }])
        if (rejected.length > 0) throw new Error('an ack was rejected')
      }
      return count
    },
  )
  await idler?.end()
}

/** One partition with all messages of the queue: those without a partition. */
async function independentCase(waiters: number): Promise<void> {
  const queue = randomUUID()
  const backlog = Math.min(400_000, waiters * 4_000 * secondsPerCase)
  await withClient(async (client) => {
    for (let sent = 0; sent < backlog; sent += 1000) {
      await push(
        client,
        Array.from({ length: 1000 }, () => ({ queue, id: randomUUID(), payload })),
      )
    }
  })
  let after = '0'
  const name = `pop + ack 1, independent, ${waiters} waiter${waiters > 1 ? 's' : ''} a call`
  await measure(name, 4, waiters, async (client) => {
    const demands = Array.from({ length: waiters }, () => ({
      batch: 1,
      partitions: 1,
      holder: 'bench',
    }))
    for (;;) {
      const { leases, status } = await pop(client, {
        source: { queue },
        group: 'g',
        demands,
        after,
      })
      if (status === 'contended') continue
      after = leases[0]?.partitionId ?? after
      for (const lease of leases) {
        const { rejected } = await ack(client, [{ leaseId: lease.leaseId }])
        if (rejected.length > 0) throw new Error('an ack was rejected')
      }
      return leases.length
    }
  })
}

/** Opens a transaction and leaves it open: vacuum cannot remove any row that is deleted later. */
async function pinXmin(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query('begin isolation level repeatable read')
  await client.query('select txid_current()')
  return client
}

async function measure(
  name: string,
  connections: number,
  batch: number,
  call: (client: Executor) => Promise<number>,
): Promise<void> {
  await withClient((client) => client.query('vacuum analyze'))
  await withClient((client) => client.query('checkpoint'))
  const pool = createPool({ url: server.url, max: connections, applicationName: 'bench' })
  const clients = await Promise.all(Array.from({ length: connections }, () => pool.connect()))
  for (const client of clients) await call(client) // prepares statements, fills caches
  const cpuBefore = familyCpuSeconds(server.pid)
  const begun = performance.now()
  let messages = 0
  let calls = 0
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() - begun < secondsPerCase * 1000) {
        const count = await call(client)
        if (count === 0) break
        messages += count
        calls += 1
      }
    }),
  )
  const seconds = (performance.now() - begun) / 1000
  const cpuUs = ((familyCpuSeconds(server.pid) - cpuBefore) * 1e6) / messages
  const perSecond = messages / seconds
  results.set(name, { perSecond, cpuUs })
  const callMs = ((seconds * 1000 * connections) / calls).toFixed(2)
  out(
    name.padEnd(52) +
      Math.round(perSecond).toLocaleString('en').padStart(10) +
      cpuUs.toFixed(1).padStart(12) +
      callMs.padStart(10),
  )
  for (const client of clients) client.release()
  await pool.end()
}

async function withClient<T>(use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}
