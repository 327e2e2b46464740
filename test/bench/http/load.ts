// The load generator of `npm run bench -- http`. Runs as a separate process, which takes one job as JSON and
// prints the results.
import { once } from 'node:events'
import { type Answer, HttpConnection, requestBytes } from '../support/http-connection.ts'

interface Throughput {
  readonly url: string
  readonly connections: number
  readonly batch: number
  readonly seconds: number
  readonly queue: string
  /** An API key, if the node needs one. */
  readonly token?: string | undefined
}

export type LoadJob =
  | (Throughput & { readonly kind: 'push' })
  | (Throughput & { readonly kind: 'consume'; readonly ackAndFetch: boolean })
  | {
      readonly kind: 'wake'
      readonly url: string
      readonly trials: number
      readonly queue: string
    }
  | {
      readonly kind: 'wait'
      readonly url: string
      readonly waiters: number
      readonly groups: number
      readonly pushes: number
    }

export interface LoadFigures {
  readonly messages: number
  readonly seconds: number
  /** Times from sending a push until a waiter has its message, in ms, sorted. */
  readonly wakesMs: number[]
  /** Times from sending a push to its response, in ms, sorted. */
  readonly pushesMs: number[]
}

/** This text occurs once in every message of a response, so its number is the number of messages. */
const perMessage = Buffer.from('"createdAt":"')
const payload = { text: 'x'.repeat(189) } // 200 bytes as JSON

const job = JSON.parse(process.argv[2] ?? '') as LoadJob
const { messages, seconds, wakesMs, pushesMs } = await carryOut(job)
process.stdout.write(
  JSON.stringify({ messages, seconds, wakesMs: sorted(wakesMs), pushesMs: sorted(pushesMs) }),
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

async function pushLoad(work: Throughput): Promise<LoadFigures> {
  const requests = Array.from({ length: 100 }, (_, n) => {
    const items = Array.from({ length: work.batch }, (_item, i) => ({
      queue: work.queue,
      partition: `p${(n * work.batch + i) % 100}`,
      payload,
    }))
    return requestBytes('POST', '/api/v1/push', JSON.stringify({ items }), work.token)
  })
  let sent = 0
  return await forSeconds(work, async (connection) => {
    sent += 1
    const answer = await connection.request(requests[sent % requests.length] as Buffer)
    expect(answer.status, 201)
    return work.batch
  })
}

async function consumeLoad(work: Throughput & { ackAndFetch: boolean }): Promise<LoadFigures> {
  const path = `/api/v1/pop/queue/${work.queue}`
  const fetching = requestBytes('GET', `${path}?batch=${work.batch}`, undefined, work.token)
  const held = new Map<HttpConnection, Buffer>()
  return await forSeconds(work, async (connection) => {
    const last = held.get(connection)
    held.delete(connection)
    if (last !== undefined && !work.ackAndFetch) await ackLease(connection, last, work.token)
    const answer = work.ackAndFetch
      ? await connection.request(
          requestBytes('POST', path, ackAndFetchBody(work.batch, last), work.token),
        )
      : await connection.request(fetching)
    if (answer.status === 204) return 0
    expect(answer.status, 200)
    const count = messagesIn(answer.body)
    if (count > 0) held.set(connection, answer.body)
    return count
  })
}

async function ackLease(connection: HttpConnection, popped: Buffer, token?: string): Promise<void> {
  // The lease id comes before the messages, so only the beginning of the response has to be parsed.
  const leaseId = /"leaseId":"([^"]+)"/.exec(popped.toString('latin1', 0, 500))?.[1]
  const body = `{"leaseId":"${leaseId}","status":"completed"}`
  const request = requestBytes('POST', '/api/v1/ack/batch', body, token)
  expect((await connection.request(request)).status, 200)
}

function ackAndFetchBody(batch: number, popped: Buffer | undefined): string {
  const found = popped === undefined ? [] : (JSON.parse(popped.toString()) as Popped).messages
  const acks = found.map((message) => ({ ...namesOf(message), status: 'completed' }))
  return JSON.stringify({ batch, acks })
}

interface Popped {
  readonly messages: Message[]
}

interface Message {
  readonly receipt?: string
  readonly transactionId: string
  readonly partitionId: string
  readonly leaseId: string
}

/** Builds before receipts existed, which `compare` may run, take the other ids. */
function namesOf({ receipt, transactionId, partitionId, leaseId }: Message): object {
  return receipt === undefined ? { transactionId, partitionId, leaseId } : { receipt }
}

function messagesIn(body: Buffer): number {
  let count = 0
  for (let at = body.indexOf(perMessage); at >= 0; at = body.indexOf(perMessage, at + 1)) count += 1
  return count
}

async function wakeLoad(work: LoadJob & { kind: 'wake' }): Promise<LoadFigures> {
  const [consumer, producer, acker] = (await Promise.all([
    HttpConnection.open(work.url),
    HttpConnection.open(work.url),
    HttpConnection.open(work.url),
  ])) as [HttpConnection, HttpConnection, HttpConnection]
  const wakesMs: number[] = []
  const pushesMs: number[] = []
  const waiting = requestBytes('GET', `/api/v1/pop/queue/${work.queue}?wait=true&timeout=20000`)
  const pushing = pushOf(work.queue)
  const begun = performance.now()
  for (let i = 0; i < work.trials; i += 1) {
    const popped = consumer.request(waiting)
    await new Promise((resolve) => setTimeout(resolve, 20)) // until the pop waits
    const sent = performance.now()
    const pushed = producer.request(pushing).then((answer) => {
      pushesMs.push(performance.now() - sent)
      return answer
    })
    const answer = await popped
    wakesMs.push(performance.now() - sent)
    expect((await pushed).status, 201)
    await ackLease(acker, answer.body)
  }
  return { messages: work.trials, seconds: (performance.now() - begun) / 1000, wakesMs, pushesMs }
}

/**
 * Starts waiters, then makes pushes that each wake one waiter. The first push to each queue creates it and is
 * not counted.
 */
async function waitLoad(work: LoadJob & { kind: 'wait' }): Promise<LoadFigures> {
  let arrived: (answer: Answer) => void = () => {}
  const connections = await openMany(work.url, work.waiters)
  connections.forEach((connection, i) => {
    const path = `/api/v1/pop/queue/w${i % work.groups}?wait=true&timeout=300000`
    connection.request(requestBytes('GET', path)).then(
      (answer) => arrived(answer),
      () => {},
    )
  })
  process.send?.('asked')
  // The parent process sends a message when it has measured all waiters.
  await once(process, 'message')
  const [producer, acker] = (await openMany(work.url, 2)) as [HttpConnection, HttpConnection]
  const wakesMs: number[] = []
  const pushesMs: number[] = []
  const warmUp = work.pushes === 0 ? 0 : work.groups
  for (let i = 0; i < warmUp + work.pushes; i += 1) {
    const sent = performance.now()
    const received = new Promise<Answer>((resolve) => {
      arrived = resolve
    }).then((answer) => ({ answer, ms: performance.now() - sent }))
    expect((await producer.request(pushOf(`w${i % work.groups}`))).status, 201)
    const pushMs = performance.now() - sent
    const { answer, ms } = await received
    expect(answer.status, 200)
    await ackLease(acker, answer.body)
    if (i < warmUp) continue
    pushesMs.push(pushMs)
    wakesMs.push(ms)
  }
  for (const connection of connections) connection.close()
  return { messages: work.pushes, seconds: 0, wakesMs, pushesMs }
}

async function openMany(url: string, count: number): Promise<HttpConnection[]> {
  const connections: HttpConnection[] = []
  for (let i = 0; i < count; i += 200) {
    const some = Array.from({ length: Math.min(200, count - i) }, () => HttpConnection.open(url))
    connections.push(...(await Promise.all(some)))
  }
  return connections
}

async function forSeconds(
  work: Throughput,
  step: (connection: HttpConnection) => Promise<number>,
): Promise<LoadFigures> {
  const connections = await openMany(work.url, work.connections)
  let count = 0
  const begun = performance.now()
  await Promise.all(
    connections.map(async (connection) => {
      while (performance.now() - begun < work.seconds * 1000) {
        const done = await step(connection)
        if (done === 0) break
        count += done
      }
    }),
  )
  const took = (performance.now() - begun) / 1000
  return { messages: count, seconds: took, wakesMs: [], pushesMs: [] }
}

function pushOf(queue: string): Buffer {
  return requestBytes('POST', '/api/v1/push', JSON.stringify({ items: [{ queue, payload }] }))
}

function sorted(numbers: readonly number[]): number[] {
  return [...numbers].sort((a, b) => a - b)
}

function expect(status: number, wanted: number): void {
  if (status !== wanted) throw new Error(`status ${status}, expected ${wanted}`)
}
