// Answers the requests of a client from a `MemoryServer`, as a node would: paths, bodies and status codes are
// those of docs/http.md.
import type { Transport, TransportAnswer, TransportRequest } from '../http/transport.ts'
import {
  type Body,
  type MemoryAnswer,
  type MemoryRequest,
  type MemoryRoutes,
  problem,
} from './memory-http.ts'
import { deadLetterRoutes } from './memory-letters.ts'
import { manageRoutes } from './memory-manage.ts'
import { messageRoutes } from './memory-messages.ts'
import type { Delivery, MemoryEnding } from './memory-queue.ts'
import type { MemoryItem, MemoryLease, MemoryServer, PopRequest } from './memory-server.ts'

export function memoryTransport(
  server: MemoryServer,
  onPush: (item: MemoryItem, id: string) => void,
): Transport {
  const all = [consumeRoutes(onPush), messageRoutes, manageRoutes, deadLetterRoutes]
  return {
    async send(request): Promise<TransportAnswer> {
      const parsed = readRequest(request)
      // A real answer never arrives in the same turn of the event loop.
      await Promise.resolve()
      let answer: MemoryAnswer = problem(
        404,
        'route_not_found',
        'the test server has no such route',
      )
      for (const routes of all) {
        const found = await routes(server, parsed)
        if (found === undefined) continue
        answer = found
        break
      }
      return {
        status: answer.status,
        retryAfter: undefined,
        text: answer.body === undefined ? '' : JSON.stringify(answer.body),
      }
    },
    close() {},
  }
}

function readRequest({ method, url, body, signal, leave }: TransportRequest): MemoryRequest {
  const path = url.pathname.split('/').slice(3).map(decodeURIComponent)
  const parsed: Body = body === undefined ? {} : JSON.parse(body)
  return { method, path, query: url.searchParams, body: parsed, signal, leave }
}

function consumeRoutes(onPush: (item: MemoryItem, id: string) => void): MemoryRoutes {
  return (server, request) => {
    const { method, path, body } = request
    const route = `${method} ${path[0] ?? ''}${path[0] === 'ack' ? `/${path[1] ?? ''}` : ''}`
    switch (route) {
      case 'POST push':
        return (
          refusal(server, body.items) ?? { status: 201, body: push(server, body.items, onPush) }
        )
      case 'POST pop':
        return pop(server, request)
      case 'POST ack/batch':
        return ack(server, body)
      case 'POST transaction':
        return transact(server, body.operations, onPush)
      case 'POST lease':
        return extend(server, path[1] ?? '', body.seconds)
      case 'DELETE lease':
        return server.endAll(server.leaseOf(path[1]), { status: 'retry' })
          ? { status: 200, body: { released: true } }
          : lost()
      default:
        return undefined
    }
  }
}

/** Why a request of pushes is refused as a whole. */
function refusal(server: MemoryServer, items: readonly MemoryItem[]): MemoryAnswer | undefined {
  for (const [i, { queue: name, partition, priority = 0, unique }] of items.entries()) {
    if (priority > 0 && partition !== undefined) {
      const text = `items[${i}].priority is not possible with a partition`
      return problem(400, 'invalid_request', text)
    }
    if (unique?.onConflict !== 'reject') continue
    const queue = server.queue(name)
    const holder = queue.holderOf(unique, queue.partitionOf(partition), server.nowMs)
    if (holder === undefined) continue
    const text = `another message holds the unique key "${unique.key}"`
    return problem(409, 'unique_conflict', text)
  }
  return undefined
}

function push(
  server: MemoryServer,
  items: readonly MemoryItem[],
  onPush: (item: MemoryItem, id: string) => void,
): Body[] {
  return server.push(items).map((result, index) => {
    if (result.status !== 'duplicate') onPush(items[index] as MemoryItem, result.id)
    return {
      index,
      status: result.status,
      message_id: result.id,
      transaction_id: result.transactionId,
      partition_id: result.partitionId,
    }
  })
}

async function pop(server: MemoryServer, request: MemoryRequest): Promise<MemoryAnswer> {
  const { path, body, leave, signal } = request
  const isWorker = leave !== undefined
  const wanted: PopRequest = {
    queue: path[2] ?? '',
    partition: path[4],
    group: body.consumerGroup ?? 'default',
    batch: body.batch ?? 1,
    partitions: body.partitions ?? 1,
    leaseMs: body.leaseSeconds === undefined ? undefined : body.leaseSeconds * 1_000,
    autoAck: body.autoAck === true,
    from: body.subscriptionFrom
      ? new Date(body.subscriptionFrom)
      : (body.subscriptionMode ?? 'all'),
    consumer: body.consumer ?? null,
    isWorker,
  }
  const isPaused = server.queues.get(wanted.queue)?.paused === true
  if (isPaused && body.wait !== true) return problem(423, 'queue_paused', 'The queue is paused')
  const acks = body.acks === undefined ? undefined : ackEach(server, body.acks)
  if (isWorker) server.consumed(wanted.queue, wanted.group, 1)
  try {
    const messages = await untilFound(server, wanted, {
      waits: body.wait === true && body.timeout > 0,
      // While acknowledgements are carried, the client waits for their results.
      timeoutMs: acks === undefined ? undefined : body.timeout,
      signals: [leave, signal],
    })
    if (messages.length === 0 && acks === undefined) return { status: 204 }
    return { status: 200, body: { messages, ...(acks === undefined ? {} : { acks }) } }
  } finally {
    // The worker asks again at once, unless it is stopping.
    if (isWorker) {
      if (leave.aborted) server.consumed(wanted.queue, wanted.group, -1)
      else
        setTimeout(() => server.consumed(wanted.queue, wanted.group, -1), workerPauseMs).unref?.()
    }
  }
}

/** How long a worker may take between two requests. */
const workerPauseMs = 50

async function untilFound(
  server: MemoryServer,
  wanted: PopRequest,
  {
    waits,
    timeoutMs,
    signals,
  }: {
    readonly waits: boolean
    readonly timeoutMs: number | undefined
    readonly signals: readonly (AbortSignal | undefined)[]
  },
): Promise<Body[]> {
  const take = (): Body[] => {
    const { lease, taken } = server.pop(wanted)
    return taken.map((delivery) => delivered(lease, delivery, wanted.autoAck))
  }
  const first = take()
  if (first.length > 0 || !waits || signals.some((signal) => signal?.aborted)) return first
  return await new Promise((resolve) => {
    const end = (messages: Body[]): void => {
      unwatch()
      clearTimeout(timer)
      for (const signal of signals) signal?.removeEventListener('abort', leave)
      resolve(messages)
    }
    const leave = (): void => end([])
    const unwatch = server.wait(() => {
      const messages = take()
      if (messages.length > 0) end(messages)
    })
    const timer = timeoutMs === undefined ? undefined : setTimeout(leave, timeoutMs)
    for (const signal of signals) signal?.addEventListener('abort', leave)
  })
}

function delivered(lease: MemoryLease, { message, attempt }: Delivery, autoAck: boolean): Body {
  const { id, queue, partition, partitionId, seq, transactionId, traceId, headers } = message
  return {
    id,
    queue,
    partition,
    partitionId,
    seq,
    transactionId,
    traceId,
    headers,
    data: JSON.parse(message.text),
    attempt,
    consumerGroup: lease.group.name === 'default' ? '__QUEUE_MODE__' : lease.group.name,
    createdAt: new Date(message.createdMs).toISOString(),
    leaseId: autoAck ? null : lease.id,
    receipt: autoAck ? null : `${lease.id}.${message.id}`,
  }
}

function ack(server: MemoryServer, body: Body): MemoryAnswer {
  if (body.acknowledgments !== undefined) {
    return { status: 200, body: ackEach(server, body.acknowledgments) }
  }
  const isHeld = server.endAll(server.leaseOf(body.leaseId), { status: body.status })
  return isHeld ? { status: 200, body: [{ index: 0, success: true }] } : lost()
}

function ackEach(server: MemoryServer, acks: readonly Body[]): Body[] {
  return acks.map((one, index) => {
    const found = server.find(one)
    if (found === undefined) return { index, success: false, error: 'lease lost' }
    const isDead = server.end(found.lease, found.delivery, endingOf(one))
    return { index, success: true, ...(isDead ? { dlq: true } : {}) }
  })
}

function endingOf({ status, error, errorCode, delayMs, result }: Body): MemoryEnding {
  return { status, error, errorCode, delayMs, result }
}

/** All or nothing: every message must still be held. */
function transact(
  server: MemoryServer,
  operations: readonly Body[],
  onPush: (item: MemoryItem, id: string) => void,
): MemoryAnswer {
  const acks = operations.filter(({ type }) => type === 'ack')
  if (acks.some((one) => server.find(one) === undefined)) return lost()
  const refused = refusal(
    server,
    operations.flatMap(({ items = [] }) => items),
  )
  if (refused !== undefined) return refused
  ackEach(server, acks)
  for (const { type, items } of operations) if (type === 'push') push(server, items, onPush)
  return { status: 200, body: { success: true } }
}

function extend(server: MemoryServer, id: string, seconds: number): MemoryAnswer {
  const lease = server.leaseOf(id)
  if (lease === undefined) return lost()
  lease.expiresMs = Math.max(lease.expiresMs, server.nowMs + seconds * 1_000)
  return { status: 200, body: { extended: true, remainingMs: lease.expiresMs - server.nowMs } }
}

function lost(): MemoryAnswer {
  return problem(409, 'lease_lost', 'the lease no longer holds that message')
}
