// The routes of dead letters.

import { type Body, type MemoryAnswer, type MemoryRequest, problem } from './memory-http.ts'
import type { MemoryLetter, MemoryQueue } from './memory-queue.ts'
import type { MemoryServer } from './memory-server.ts'

interface Found {
  readonly queue: MemoryQueue
  readonly letter: MemoryLetter
}

export function deadLetterRoutes(
  server: MemoryServer,
  { method, path, query, body }: MemoryRequest,
): MemoryAnswer | undefined {
  if (path[0] !== 'dead-letters') return undefined
  const [, id] = path
  if (id === 'errors') return { status: 200, body: { errors: errorsOf(find(server, read(query))) } }
  if (id === 'redrives') return redrive(server, method, body)
  if (id !== undefined) {
    const found = find(server, { ids: [id] })
    if (found.length === 0) return problem(404, 'not_found', `there is no dead letter "${id}"`)
    return { status: 200, body: { deadLetters: found.map(toLetter) } }
  }
  const found = find(server, read(query))
  if (method === 'GET') {
    return { status: 200, body: { deadLetters: found.toReversed().map(toLetter), cursor: null } }
  }
  for (const { queue, letter } of found) {
    queue.letters = queue.letters.filter((one) => one !== letter)
  }
  return { status: 200, body: { queue: query.get('queue'), deleted: found.length } }
}

function read(query: URLSearchParams): Body {
  const { cursor: _, ...filter } = Object.fromEntries(query)
  return filter
}

function find(server: MemoryServer, filter: Body): Found[] {
  const { queue: name, consumerGroup, partition, errorCode, errorMessage, ids, from, to } = filter
  return [...server.queues.values()]
    .flatMap((queue) => queue.letters.map((letter) => ({ queue, letter })))
    .filter(({ queue, letter: { group, letterId, delivery, failedMs } }) => {
      const last = delivery.history.at(-1)
      const { message } = delivery
      return (
        (name ?? queue.name) === queue.name &&
        (consumerGroup ?? group) === group &&
        (partition ?? message.partition) === message.partition &&
        (errorCode ?? last?.errorCode) === last?.errorCode &&
        (errorMessage ?? last?.errorMessage) === last?.errorMessage &&
        (ids === undefined || ids.includes(letterId) || ids.includes(message.id)) &&
        (from === undefined || failedMs >= Date.parse(from)) &&
        (to === undefined || failedMs < Date.parse(to))
      )
    })
}

function toLetter({ queue, letter }: Found): Body {
  const { delivery, group, letterId, failedMs } = letter
  const { message, history } = delivery
  const last = history.at(-1)
  return {
    id: message.id,
    letterId,
    queue: queue.name,
    partition: message.partition,
    consumerGroup: group,
    data: JSON.parse(message.text),
    headers: message.headers,
    errorCode: last?.errorCode ?? null,
    errorMessage: last?.errorMessage ?? null,
    attempts: history.length,
    createdAt: new Date(message.createdMs).toISOString(),
    failedAt: new Date(failedMs).toISOString(),
    history: history.map(({ endedMs, ...attempt }) => ({
      ...attempt,
      holder: null,
      deliveredAt: null,
      endedAt: new Date(endedMs).toISOString(),
    })),
  }
}

function errorsOf(found: readonly Found[]): Body[] {
  const byCode = new Map<string, Body>()
  for (const one of found) {
    const { queue, consumerGroup, errorCode, errorMessage, failedAt } = toLetter(one)
    const key = JSON.stringify([queue, consumerGroup, errorCode ?? errorMessage])
    const before = byCode.get(key)
    byCode.set(key, {
      queue,
      consumerGroup,
      errorCode,
      errorMessage,
      count: (before?.count ?? 0) + 1,
      firstFailedAt: before?.firstFailedAt ?? failedAt,
      lastFailedAt: failedAt,
    })
  }
  return [...byCode.values()]
}

/** A redrive has ended before its response, whatever its rate. */
function redrive(server: MemoryServer, method: string, body: Body): MemoryAnswer {
  if (method !== 'POST') return problem(404, 'not_found', 'there is no such redrive')
  const { queue, where = {}, rate = null, dryRun } = body
  const found = find(server, { ...where, queue })
  const total = found.length
  if (dryRun === true) return { status: 200, body: { dryRun: true, queue, total, lanes: [] } }
  for (const one of found) one.queue.redrive(one.letter, server.nowMs)
  server.wake()
  const at = new Date(server.nowMs).toISOString()
  const done = { id: 'redrive', queue, state: 'done', moved: total, total, rate }
  return { status: 202, body: { ...done, startedAt: at, updatedAt: at } }
}
