// The load generator of `npm run bench -- http`, a process of its own: takes one job as JSON, answers with figures.
import { HttpConnection } from './http-connection.ts'

export type LoadJob =
  | {
      kind: 'push'
      url: string
      connections: number
      batch: number
      seconds: number
      queue: string
    }
  | {
      kind: 'consume'
      url: string
      connections: number
      batch: number
      seconds: number
      queue: string
      ackAndFetch: boolean
    }
  | { kind: 'wake'; url: string; trials: number; queue: string }
  | { kind: 'wait'; url: string; waiters: number; groups: number; seconds: number; pushes: number }

export interface LoadFigures {
  readonly messages: number
  readonly seconds: number
  /** Sorted, in ms, where the job measures latency. */
  readonly latenciesMs: number[]
}

const payload = { text: 'x'.repeat(189) } // 200 bytes as JSON

const job = JSON.parse(process.argv[2] ?? '') as LoadJob
const figures = await carryOut(job)
process.stdout.write(
  JSON.stringify({ ...figures, latenciesMs: figures.latenciesMs.sort((a, b) => a - b) }),
)
process.exit(0)

function carryOut(work: LoadJob): Promise<LoadFigures> {
  switch (work.kind) {
    case 'push':
      return pushLoad(work)
    case 'consume':
      return consumeLoad(work)
    case 'wake':
      return wakeLoad(work)
    case 'wait':
      return waitLoad(work)
    default:
      return work satisfies never
  }
}

async function pushLoad(work: LoadJob & { kind: 'push' }): Promise<LoadFigures> {
  const bodies = Array.from({ length: 100 }, (_, n) =>
    JSON.stringify({
      items: Array.from({ length: work.batch }, (_item, i) => ({
        queue: work.queue,
        partition: `p${(n * work.batch + i) % 100}`,
        payload,
      })),
    }),
  )
  let sent = 0
  return await forSeconds(work, async (connection) => {
    sent += 1
    const answer = await connection.request('POST', '/api/v1/push', bodies[sent % bodies.length])
    expect(answer.status, 201)
    return work.batch
  })
}

async function consumeLoad(work: LoadJob & { kind: 'consume' }): Promise<LoadFigures> {
  const path = `/api/v1/pop/queue/${work.queue}`
  const held = new Map<HttpConnection, Popped>()
  return await forSeconds(work, async (connection) => {
    const last = held.get(connection)
    held.delete(connection)
    if (last !== undefined && !work.ackAndFetch) {
      const body = JSON.stringify({ leaseId: last.leaseId, status: 'completed' })
      expect((await connection.request('POST', '/api/v1/ack/batch', body)).status, 200)
    }
    const answer = work.ackAndFetch
      ? await connection.request(
          'POST',
          path,
          JSON.stringify({ batch: work.batch, acks: acksOf(last) }),
        )
      : await connection.request('GET', `${path}?batch=${work.batch}`)
    if (answer.status === 204) return 0
    expect(answer.status, 200)
    const popped = JSON.parse(answer.body.toString()) as Popped
    if (popped.messages.length > 0) held.set(connection, popped)
    return popped.messages.length
  })
}

interface Popped {
  readonly leaseId: string
  readonly messages: { transactionId: string; partitionId: string; leaseId: string }[]
}

function acksOf(popped: Popped | undefined): unknown[] {
  return (popped?.messages ?? []).map(({ transactionId, partitionId, leaseId }) => ({
    transactionId,
    partitionId,
    leaseId,
    status: 'completed',
  }))
}

/** From the moment a push is sent to the moment the waiting pop has its message. */
async function wakeLoad(work: LoadJob & { kind: 'wake' }): Promise<LoadFigures> {
  const [consumer, producer, acker] = (await Promise.all([
    HttpConnection.open(work.url),
    HttpConnection.open(work.url),
    HttpConnection.open(work.url),
  ])) as [HttpConnection, HttpConnection, HttpConnection]
  const latenciesMs: number[] = []
  const body = JSON.stringify({ items: [{ queue: work.queue, payload }] })
  const begun = performance.now()
  for (let i = 0; i < work.trials; i += 1) {
    const popped = consumer.request(
      'GET',
      `/api/v1/pop/queue/${work.queue}?wait=true&timeout=20000`,
    )
    await new Promise((resolve) => setTimeout(resolve, 20)) // until it waits
    const sent = performance.now()
    const pushed = producer.request('POST', '/api/v1/push', body)
    const answer = await popped
    latenciesMs.push(performance.now() - sent)
    expect((await pushed).status, 201)
    const { leaseId } = JSON.parse(answer.body.toString()) as { leaseId: string }
    await acker.request(
      'POST',
      '/api/v1/ack/batch',
      JSON.stringify({ leaseId, status: 'completed' }),
    )
  }
  return { messages: work.trials, seconds: (performance.now() - begun) / 1000, latenciesMs }
}

/** Waiters that wait; then pushes that each answer one of them. */
async function waitLoad(work: LoadJob & { kind: 'wait' }): Promise<LoadFigures> {
  const arrivals: number[] = []
  const connections: HttpConnection[] = []
  for (let i = 0; i < work.waiters; i += 200) {
    const some = await Promise.all(
      Array.from({ length: Math.min(200, work.waiters - i) }, () => HttpConnection.open(work.url)),
    )
    connections.push(...some)
  }
  connections.forEach((connection, i) => {
    const path = `/api/v1/pop/queue/w${i % work.groups}?wait=true&timeout=300000`
    connection.request('GET', path).then(
      () => arrivals.push(performance.now()),
      () => {},
    )
  })
  process.send?.('waiting')
  await new Promise((resolve) => setTimeout(resolve, work.seconds * 1000))
  process.send?.('waited')
  const producer = await HttpConnection.open(work.url)
  const latenciesMs: number[] = []
  for (let i = 0; i < work.pushes; i += 1) {
    const before = arrivals.length
    const sent = performance.now()
    await producer.request(
      'POST',
      '/api/v1/push',
      JSON.stringify({ items: [{ queue: `w${i % work.groups}`, payload }] }),
    )
    while (arrivals.length === before) await new Promise((resolve) => setImmediate(resolve))
    latenciesMs.push((arrivals.at(-1) as number) - sent)
  }
  for (const connection of connections) connection.close()
  return { messages: work.pushes, seconds: work.seconds, latenciesMs }
}

async function forSeconds(
  work: { url: string; connections: number; seconds: number },
  step: (connection: HttpConnection) => Promise<number>,
): Promise<LoadFigures> {
  const connections = await Promise.all(
    Array.from({ length: work.connections }, () => HttpConnection.open(work.url)),
  )
  let messages = 0
  const begun = performance.now()
  await Promise.all(
    connections.map(async (connection) => {
      while (performance.now() - begun < work.seconds * 1000) {
        const count = await step(connection)
        if (count === 0) break
        messages += count
      }
    }),
  )
  return { messages, seconds: (performance.now() - begun) / 1000, latenciesMs: [] }
}

function expect(status: number, wanted: number): void {
  if (status !== wanted) throw new Error(`answered ${status} where ${wanted} was expected`)
}
