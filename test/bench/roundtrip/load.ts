// The load generator of `npm run bench -- roundtrip`, a separate process: single pushes at a fixed rate, and
// consumers that wait for one message each and acknowledge it. It runs until its parent ends it; each order
// of the parent is one measured run.
import { Rouse } from '@rouse/client'
import { HttpConnection, requestBytes } from '../support/http-connection.ts'

export interface LoadSetup {
  readonly urls: readonly string[]
  readonly queue: string
  readonly consumers: number
  readonly partitions: number
  readonly via: 'http' | 'ack-and-fetch' | 'sdk'
}

export interface LoadOrder {
  readonly rate: number
  readonly seconds: number
}

export interface LoadResult {
  readonly messages: number
  readonly seconds: number
  readonly cpuSeconds: number
  /** The time from when a push was due until its message reached a consumer. Sorted. */
  readonly latenciesMs: number[]
}

interface Message {
  readonly receipt?: string
  readonly transactionId: string
  readonly partitionId: string
  readonly leaseId: string
  readonly data: { readonly n: number }
}

const text = 'x'.repeat(180) // about 200 bytes with the rest
const pushConnections = 16
/** A run that is this far behind its rate is saturated, and ends early. */
const behindMsMax = 2_000

const setup = JSON.parse(process.argv[2] ?? '') as LoadSetup
const dueMs = new Map<number, number>()
let latenciesMs: number[] = []
let nextMessage = 0
let onIdle: (() => void) | undefined

const push = setup.via === 'sdk' ? sdkPush() : await httpPush()
startConsumers()
process.on('message', (order: LoadOrder) => void run(order))
process.send?.('ready')

async function run({ rate, seconds }: LoadOrder): Promise<void> {
  latenciesMs = []
  const first = nextMessage
  const cpu = process.cpuUsage()
  const begunMs = performance.now()
  const pushes: Promise<void>[] = []
  const intervalMs = 1_000 / rate
  const count = Math.round(rate * seconds)
  for (let i = 0; i < count; i += 1) {
    const at = begunMs + i * intervalMs
    const waitMs = at - performance.now()
    if (waitMs > 0.5) await new Promise((resolve) => setTimeout(resolve, waitMs))
    if (waitMs < -behindMsMax || dueMs.size > rate * 5) break
    const n = nextMessage
    nextMessage += 1
    dueMs.set(n, at)
    pushes.push(push(n))
  }
  await Promise.all(pushes)
  await new Promise<void>((resolve) => {
    onIdle = resolve
    if (dueMs.size === 0) resolve()
  })
  const { user, system } = process.cpuUsage(cpu)
  const result: LoadResult = {
    messages: nextMessage - first,
    seconds: (performance.now() - begunMs) / 1_000,
    cpuSeconds: (user + system) / 1e6,
    latenciesMs: latenciesMs.sort((a, b) => a - b),
  }
  process.send?.(result)
}

function received(n: number): void {
  const at = dueMs.get(n)
  if (at === undefined) throw new Error(`message ${n} was delivered twice`)
  dueMs.delete(n)
  latenciesMs.push(performance.now() - at)
  if (dueMs.size === 0) onIdle?.()
}

/** Sends each push at once on an idle connection; the nodes take turns. */
async function httpPush(): Promise<(n: number) => Promise<void>> {
  const idle = await Promise.all(
    Array.from({ length: pushConnections }, (_, i) => HttpConnection.open(urlFor(i))),
  )
  const waiting: ((connection: HttpConnection) => void)[] = []
  const take = (): Promise<HttpConnection> => {
    const connection = idle.shift()
    if (connection !== undefined) return Promise.resolve(connection)
    return new Promise((resolve) => waiting.push(resolve))
  }
  const giveBack = (connection: HttpConnection): void => {
    const next = waiting.shift()
    if (next === undefined) idle.push(connection)
    else next(connection)
  }
  return async (n) => {
    const connection = await take()
    const item = { queue: setup.queue, partition: partitionOf(n), payload: { n, text } }
    const body = JSON.stringify({ items: [item] })
    expectStatus(await connection.request(requestBytes('POST', '/api/v1/push', body)), 201)
    giveBack(connection)
  }
}

function sdkPush(): (n: number) => Promise<void> {
  const rouse = new Rouse<Record<string, { n: number; text: string }>>({ urls: [...setup.urls] })
  const queue = rouse.queue(setup.queue)
  return async (n) => {
    await queue.push({ n, text }, { partition: partitionOf(n) })
  }
}

function startConsumers(): void {
  if (setup.via === 'sdk') {
    const rouse = new Rouse<Record<string, { n: number }>>({ urls: [...setup.urls] })
    rouse
      .queue(setup.queue)
      .work({ concurrency: setup.consumers, onError: fail }, async ({ data }) => received(data.n))
    return
  }
  for (let i = 0; i < setup.consumers; i += 1) consume(i).catch(fail)
}

async function consume(i: number): Promise<void> {
  const connection = await HttpConnection.open(urlFor(i))
  const path = `/api/v1/pop/queue/${setup.queue}`
  const waitingPop = requestBytes('GET', `${path}?batch=1&wait=true&timeout=30000`)
  let held: Message | undefined
  for (;;) {
    const acks = held === undefined ? [] : [ackOf(held)]
    const isJoined = setup.via === 'ack-and-fetch'
    if (!isJoined && held !== undefined) {
      const ack = requestBytes('POST', '/api/v1/ack', JSON.stringify(ackOf(held)))
      expectStatus(await connection.request(ack), 200)
    }
    const body = JSON.stringify({ batch: 1, wait: true, timeout: 30_000, acks })
    const answer = await connection.request(
      isJoined ? requestBytes('POST', path, body) : waitingPop,
    )
    held = undefined
    if (answer.status === 204) continue
    expectStatus(answer, 200)
    held = (JSON.parse(answer.body.toString()) as { messages: Message[] }).messages[0]
    if (held !== undefined) received(held.data.n)
  }
}

/** Builds before receipts existed, which `compare` may run, take the other ids. */
function ackOf({ receipt, transactionId, partitionId, leaseId }: Message): object {
  const names = receipt === undefined ? { transactionId, partitionId, leaseId } : { receipt }
  return { ...names, status: 'completed' }
}

function urlFor(i: number): string {
  return setup.urls[i % setup.urls.length] as string
}

function partitionOf(n: number): string {
  return `p${n % setup.partitions}`
}

function expectStatus(answer: { status: number; body: Buffer }, wanted: number): void {
  if (answer.status !== wanted) throw new Error(`${answer.status}: ${answer.body.toString()}`)
}

function fail(error: unknown): void {
  console.error(error)
  process.exit(1)
}
