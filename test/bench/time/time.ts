// `npm run bench -- time [--only delay,busy,killed,notify,lengths,retention] [--seconds S] [--messages N]`:
// delayed messages, commits of SQL producers, times that tests shorten, and how much retention slows down
// concurrent pushes. Exits with 1 if a limit is exceeded.
import { parseArgs } from 'node:util'
import { startEmbeddedPostgres } from '@rouse/database'
import pg from 'pg'
import { percentile, percentiles, Verdict } from '../support/figures.ts'
import { HttpConnection, requestBytes } from '../support/http-connection.ts'
import { type BenchNode, startNode } from '../support/node.ts'
import { busyPartition } from './busy.ts'
import { realLengths } from './lengths.ts'
import { retentionUnderLoad } from './retention.ts'

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string', default: 'delay,busy,killed,notify,lengths,retention' },
    seconds: { type: 'string', default: '10' },
    messages: { type: 'string', default: '1000000' },
  },
})
const parts = new Set(flags.only.split(','))
const spanMs = Number(flags.seconds) * 1_000
const dueTimes = 1_000
/** The time from the first push until the first message is due. All pushes must end within it. */
const leadMs = 6_000
const perRequest = 5
const out = (line: string): void => void process.stdout.write(`${line}\n`)
const verdict = new Verdict()
// Several nodes run on one machine, so each chooses a free gossip port.
process.env.ROUSE_GOSSIP_PORT = '0'

const server = await startEmbeddedPostgres({
  settings: { shared_buffers: '512MB', max_wal_size: '4GB' },
})
const node = await startNode(server.url)
try {
  if (parts.has('delay')) await delays()
  if (parts.has('busy')) await busyPartition({ node, server, verdict, out, spanMs })
  if (parts.has('killed')) await killed()
  if (parts.has('notify')) await notified()
  if (parts.has('lengths')) await realLengths({ node, server, verdict, out })
  if (parts.has('retention')) {
    await retentionUnderLoad({ node, server, verdict, out, messages: Number(flags.messages) })
  }
} finally {
  await node.stop()
  await server.stop()
}
process.exit(verdict.report(out))

async function delays(): Promise<void> {
  await lateness('warm', node, node, async () => {}, 1_000)
  const lateMs = await lateness('delays', node, node, async () => {})
  out(`${dueTimes} due times over ${spanMs / 1_000} s, late by: ${percentiles(lateMs)}`)
  verdict.check([
    { what: 'ms by which a due time is early', value: -(lateMs[0] ?? Number.NaN), max: 0 },
    { what: 'ms by which a due time is late, p99', value: percentile(lateMs, 0.99), max: 50 },
  ])
}

/** Kills the node that accepted the messages before they are due. */
async function killed(): Promise<void> {
  const victim = await startNode(server.url)
  const lateMs = await lateness('killed', victim, node, async () => {
    process.kill(victim.pid, 'SIGKILL')
  })
  out(`the same, the node that took them killed: ${percentiles(lateMs)}`)
  verdict.check([
    { what: 'ms by which a due time is early', value: -(lateMs[0] ?? Number.NaN), max: 0 },
    { what: 'ms late after the node was killed', value: percentile(lateMs, 1), max: 1_100 },
  ])
}

interface DueAt {
  readonly earliestMs: number
  readonly latestMs: number
}

/** Pushes to one node and consumes on the other. Returns how many ms each message came late, sorted. */
async function lateness(
  queue: string,
  producer: BenchNode,
  consumer: BenchNode,
  afterPush: () => Promise<void>,
  overMs = spanMs,
): Promise<number[]> {
  const dueAt: DueAt[] = []
  const lateMs: number[] = []
  const consumed = Promise.all(
    Array.from({ length: 4 }, () => consume(queue, consumer, dueAt, lateMs)),
  )
  consumed.catch(() => {}) // if a push fails as well, its error is more useful
  const firstAt = Date.now() + leadMs
  let next = 0
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      const connection = await HttpConnection.open(producer.url)
      while (next < dueTimes) {
        const first = next
        next += perRequest
        const items = Array.from({ length: perRequest }, (_, n) => {
          const i = first + n
          const dueAtMs = Math.round(firstAt + (i * overMs) / dueTimes)
          dueAt[i] = { earliestMs: dueAtMs, latestMs: dueAtMs }
          const item = { queue, partition: `p${i % 50}`, payload: i }
          if (i % 2 === 0) return { ...item, runAt: new Date(dueAtMs).toISOString() }
          return { ...item, delayMs: Math.max(1, dueAtMs - Date.now()) }
        })
        const body = JSON.stringify({ items })
        const { status } = await connection.request(requestBytes('POST', '/api/v1/push', body))
        if (status !== 201) throw new Error(`a push was answered with ${status}`)
        // The delay begins when the node handles the push, between the request and its response.
        for (const item of items) {
          if (!('delayMs' in item)) continue
          const due = dueAt[item.payload] as DueAt
          dueAt[item.payload] = { ...due, latestMs: Date.now() + item.delayMs }
        }
      }
      connection.close()
    }),
  )
  if (Date.now() >= firstAt) throw new Error('the pushes took too long for this measurement')
  await afterPush()
  await consumed
  return lateMs.sort((a, b) => a - b)
}

async function consume(
  queue: string,
  at: BenchNode,
  dueAt: readonly DueAt[],
  lateMs: number[],
): Promise<void> {
  const path = `/api/v1/pop/queue/${queue}?wait=true&timeout=2000&batch=50&partitions=50&autoAck=true`
  const pop = requestBytes('GET', path)
  const connection = await HttpConnection.open(at.url)
  while (lateMs.length < dueTimes) {
    const { status, body } = await connection.request(pop)
    const now = Date.now()
    if (status !== 200) continue
    const { messages } = JSON.parse(body.toString()) as { messages: { data: number }[] }
    for (const { data } of messages) {
      const { earliestMs, latestMs } = dueAt[data] as DueAt
      lateMs.push(now < earliestMs ? now - earliestMs : Math.max(0, now - latestMs))
    }
  }
  connection.close()
}

async function notified(): Promise<void> {
  const user = new pg.Client({ connectionString: server.url })
  await user.connect()
  const connection = await HttpConnection.open(node.url)
  const pop = requestBytes('GET', '/api/v1/pop/queue/sql?wait=true&timeout=5000')
  const tookMs: number[] = []
  for (let trial = 0; trial < 220; trial += 1) {
    const answer = connection.request(pop)
    // Wait until the pop has found nothing and waits.
    await new Promise((resolve) => setTimeout(resolve, 30))
    await user.query('begin')
    await user.query(`select rouse.enqueue('sql', '1')`)
    await user.query('commit')
    const committed = performance.now()
    const { status, body } = await answer
    if (trial >= 20) tookMs.push(performance.now() - committed)
    if (status !== 200) throw new Error('a waiter was not woken')
    const [{ receipt }] = (JSON.parse(body.toString()) as { messages: [{ receipt: string }] })
      .messages
    await user.query('select rouse.ack_in($1)', [receipt])
  }
  connection.close()
  await user.end()
  tookMs.sort((a, b) => a - b)
  out(`COMMIT of an enqueue to message received: ${percentiles(tookMs)}`)
  verdict.check([
    { what: 'ms from COMMIT to the waiter, median', value: percentile(tookMs, 0.5), max: 10 },
  ])
}
