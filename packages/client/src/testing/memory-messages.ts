// The routes of messages by their ids: look up, list, cancel, make due, report progress, wait for the end.

import { type Body, type MemoryAnswer, type MemoryRequest, problem } from './memory-http.ts'
import type { Delivery, MemoryGroup, MemoryMessage } from './memory-queue.ts'
import type { MemoryServer } from './memory-server.ts'

export function messageRoutes(
  server: MemoryServer,
  request: MemoryRequest,
): MemoryAnswer | Promise<MemoryAnswer> | undefined {
  const { method, path, query, body } = request
  const [route, id, verb] = path
  if (route !== 'messages') return undefined
  if (id === undefined) return method === 'GET' ? list(server, query) : cancelMany(server, query)
  const message = server.messagesOf().find((one) =>
    verb === undefined || method === 'POST'
      ? one.id === id
      : // The older way: partition and transaction.
        one.partitionId === id && one.transactionId === verb,
  )
  if (message === undefined) return problem(404, 'not_found', `there is no message "${id}"`)
  switch (`${method} ${method === 'POST' ? verb : ''}`) {
    case 'GET ':
      return query.get('wait') === 'true'
        ? waitForEnd(server, message, request)
        : { status: 200, body: shown(server, message) }
    case 'DELETE ':
      return cancel(server, message)
    case 'POST run-now':
      return server.runNow(message)
        ? { status: 200, body: { id } }
        : problem(409, 'not_scheduled', 'the message is neither scheduled nor waiting for a retry')
    case 'POST progress':
      return report(server, message, body)
    default:
      return undefined
  }
}

const states = ['ready', 'leased', 'retrying', 'dead', 'completed'] as const

/** The state of a message. If several groups get it, the state in the group that is furthest behind. */
function stateOf(server: MemoryServer, message: MemoryMessage, group?: string | null): string {
  if (message.cancelledMs !== null) return 'cancelled'
  if (message.seq === null) return 'scheduled'
  const found = server
    .queue(message.queue)
    .deliveriesOf(message)
    .filter((one) => (group ?? one.group.name) === one.group.name)
    .map(({ delivery }) => groupState(delivery))
  return states.find((state) => found.includes(state)) ?? 'ready'
}

function groupState({ state, attempt, history }: Delivery): string {
  return state === 'ready' && (attempt > 0 || history.length > 0) ? 'retrying' : state
}

function list(server: MemoryServer, query: URLSearchParams): MemoryAnswer {
  const messages = matching(server, query).map((message) => ({
    ...fieldsOf(message),
    state: stateOf(server, message, query.get('consumerGroup')),
  }))
  return { status: 200, body: { messages, cursor: null } }
}

function matching(server: MemoryServer, query: URLSearchParams): MemoryMessage[] {
  const { state, partition, consumerGroup, errorCode, from, to } = Object.fromEntries(query)
  return server.messagesOf(query.get('queue') ?? '').filter((message) => {
    const codes = server
      .queue(message.queue)
      .deliveriesOf(message)
      .map(({ delivery }) => delivery.history.at(-1)?.errorCode)
    return (
      (state === undefined || stateOf(server, message, consumerGroup) === state) &&
      (partition === undefined || message.partition === partition) &&
      (errorCode === undefined || codes.includes(errorCode)) &&
      (from === undefined || message.createdMs >= Date.parse(from)) &&
      (to === undefined || message.createdMs < Date.parse(to))
    )
  })
}

function cancel(server: MemoryServer, message: MemoryMessage): MemoryAnswer {
  if (message.cancelledMs === null) {
    const deliveries = server.queue(message.queue).deliveriesOf(message)
    const found = deliveries.map(({ delivery }) => delivery.state)
    if (found.includes('leased')) return problem(409, 'message_leased', 'a consumer holds it')
    if (found.includes('completed') || found.includes('dead')) {
      return problem(409, 'message_finished', 'a consumer group has ended it')
    }
    server.cancel(message)
  }
  return { status: 200, body: { cancelled: true } }
}

function cancelMany(server: MemoryServer, query: URLSearchParams): MemoryAnswer {
  const found = matching(server, query)
  const cancelled =
    query.get('dryRun') === 'true'
      ? []
      : found.filter((message) => cancel(server, message).status === 200)
  return {
    status: 200,
    body: { matched: found.length, cancelled: cancelled.length, cursor: null },
  }
}

function report(server: MemoryServer, { id }: MemoryMessage, body: Body): MemoryAnswer {
  const found = server.find(body)
  if (found === undefined || found.delivery.message.id !== id) {
    return problem(409, 'lease_lost', 'the lease no longer holds that message')
  }
  found.delivery.progress = body.progress
  return { status: 200, body: { id, success: true } }
}

/** Answers when the message has ended, or at the deadline of the virtual or of the real clock. */
async function waitForEnd(
  server: MemoryServer,
  message: MemoryMessage,
  { query, signal }: MemoryRequest,
): Promise<MemoryAnswer> {
  const timeoutMs = Number(query.get('timeout') ?? 30_000)
  const deadlineMs = server.nowMs + timeoutMs
  const group = query.get('consumerGroup')
  const isOver = (): boolean =>
    server.nowMs >= deadlineMs ||
    ['completed', 'dead', 'cancelled'].includes(stateOf(server, message, group))
  if (!isOver()) {
    await new Promise<void>((resolve) => {
      const end = (): void => {
        unwatch()
        clearTimeout(timer)
        resolve()
      }
      const unwatch = server.wait(() => isOver() && end())
      const timer = setTimeout(end, timeoutMs)
      signal.addEventListener('abort', end)
    })
  }
  return { status: 200, body: shown(server, message) }
}

function fieldsOf(message: MemoryMessage): Body {
  const { text, createdMs, dueMs, ...fields } = message
  const { unique: _, expiresMs: __, cancelledMs: ___, ...shownFields } = fields
  return {
    ...shownFields,
    data: JSON.parse(text),
    createdAt: iso(createdMs),
    dueAt: message.seq === null ? iso(dueMs) : null,
  }
}

function shown(server: MemoryServer, message: MemoryMessage): Body {
  const queue = server.queue(message.queue)
  const found = queue.deliveriesOf(message)
  const groups = found.map((one) => groupOf(server, one))
  const state = stateOf(server, message)
  const times = found.map(({ delivery }) => delivery.completedMs)
  const { unique } = message
  return {
    ...fieldsOf(message),
    state,
    cancelledAt: iso(message.cancelledMs),
    keptUntil: null,
    unique:
      unique === null
        ? null
        : {
            key: unique.key,
            scope: unique.scope ?? 'queue',
            until: unique.until ?? 'completed',
            held: queue.hasKey(message, server.nowMs),
          },
    expiresAt: iso(message.expiresMs),
    firstDeliveredAt: iso(found.find(({ delivery }) => isKnown(delivery))?.delivery.deliveredMs),
    completedAt:
      state === 'completed' && !times.includes(null) ? iso(Math.max(...times.map(Number))) : null,
    result: groups.find(({ result }) => result !== null)?.result ?? null,
    progress: groups.find(({ progress }) => progress !== null)?.progress ?? null,
    attempts: groups.flatMap(({ consumerGroup, history }) =>
      history.map((attempt: Body) => ({ consumerGroup, ...attempt })),
    ),
    groups,
  }
}

/** Without a full history, the node records no times of a message that succeeded without a result. */
function isKnown({ state, completedMs, history }: Delivery): boolean {
  return state !== 'completed' || completedMs !== null || history.length > 0
}

function groupOf(
  server: MemoryServer,
  { group, delivery }: { readonly group: MemoryGroup; readonly delivery: Delivery },
): Body {
  const { state, attempt, dueMs, lease, history, consumer, deliveredMs } = delivery
  const last = history.at(-1)
  const isLeased = state === 'leased'
  return {
    consumerGroup: group.name,
    state: groupState(delivery),
    status: groupState(delivery),
    attempts: attempt,
    consumer: isLeased ? consumer : null,
    deliveredAt: isLeased ? iso(deliveredMs) : null,
    leaseExpiresAt: iso(server.leases.get(lease ?? '')?.expiresMs),
    nextTryAt: state === 'ready' && attempt > 0 ? iso(dueMs) : null,
    errorCode: last?.errorCode ?? null,
    errorMessage: last?.errorMessage ?? null,
    result: delivery.result,
    completedAt: iso(delivery.completedMs),
    progress: delivery.progress,
    history: history.map(({ endedMs, ...attempted }) => ({ ...attempted, endedAt: iso(endedMs) })),
  }
}

function iso(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString()
}
