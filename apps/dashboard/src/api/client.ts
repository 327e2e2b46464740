// Requests to the node that served the page, or to another one behind the same address. Addresses are relative to the
// page, so that they are right under every path.

import { connectionFailed, connectionWorks } from './connection.ts'
import { csrfHeader } from './csrf.ts'

const timeoutMs = 12_000

/** What a node answered when it refused a request. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  /** The missing grant of a 403. */
  readonly grant: string | undefined

  constructor(status: number, problem: Readonly<Record<string, unknown>>) {
    super(textOf(problem.detail) ?? `the node answered ${status}`)
    this.status = status
    this.code = textOf(problem.code) ?? 'unknown'
    this.grant = textOf(problem.grant)
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

export interface Request {
  readonly method?: string
  readonly body?: unknown
  /** JSON text, if its numbers must keep all digits. */
  readonly bodyText?: string
  /** Keeps all digits of numbers in the answer, for payloads. */
  readonly isExact?: boolean
}

/** Called with every 401, so that the form for signing in appears. */
let onUnauthenticated: () => void = () => {}
export function whenUnauthenticated(listener: () => void): void {
  onUnauthenticated = listener
}

export async function ask<Answer>(path: string, request: Request = {}): Promise<Answer> {
  const { method = 'GET', isExact = false } = request
  const text =
    request.bodyText ?? (request.body === undefined ? undefined : JSON.stringify(request.body))
  const response = await send(path, {
    method,
    headers: {
      accept: 'application/json',
      ...(method === 'GET' ? {} : { [csrfHeader]: '1' }),
      ...(text === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(text === undefined ? {} : { body: text }),
  })
  const answer = await response.text()
  if (!response.ok) {
    if (response.status === 401 && path !== '/api/v1/session') onUnauthenticated()
    throw new ApiError(response.status, problemOf(answer))
  }
  if (!(response.headers.get('content-type') ?? '').includes('json')) return answer as Answer
  return (isExact ? parseExact(answer) : JSON.parse(answer)) as Answer
}

/** A read that fails before an answer is sent once more: a balancer then chooses another node. */
async function send(path: string, init: RequestInit): Promise<Response> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const signal = AbortSignal.timeout(timeoutMs)
      const response = await fetch(`..${path}`, { ...init, signal, cache: 'no-store' })
      connectionWorks()
      return response
    } catch (error) {
      if (attempt === 1 && init.method === 'GET') continue
      connectionFailed()
      const why =
        (error as Error).name === 'TimeoutError' ? 'no answer within 12 s' : 'no connection'
      throw new ApiError(0, { code: 'no_connection', detail: `${why} to the cluster` })
    }
  }
}

function problemOf(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>
  } catch {
    return {}
  }
}

interface RawJson {
  rawJSON?: (text: string) => unknown
}

/** Numbers that a double cannot hold keep their text. Older browsers round them. */
function parseExact(text: string): unknown {
  const { rawJSON } = JSON as RawJson
  if (rawJSON === undefined) return JSON.parse(text)
  const reviver = (_key: string, value: unknown, context?: { readonly source?: string }) => {
    const source = context?.source
    return typeof value === 'number' && source !== undefined && String(value) !== source
      ? rawJSON(source)
      : value
  }
  return JSON.parse(text, reviver as Parameters<typeof JSON.parse>[1])
}

export function segment(name: string): string {
  return encodeURIComponent(name)
}

/** A path with those parameters that have a value. */
export function withQuery(
  path: string,
  query: Readonly<Record<string, string | number | boolean | null | undefined>>,
): string {
  const given = Object.entries(query).filter(
    ([, value]) => value !== undefined && value !== null && value !== '',
  )
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return text === '' ? path : `${path}?${text}`
}
