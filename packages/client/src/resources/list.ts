// Calls of resources: JSON in, JSON out, and lists in pages.
import { readAnswer } from '../consume/consumer-calls.ts'
import type { Call, Caller } from '../http/caller.ts'

/** Options of every call that waits for an answer. */
export interface CallOptions {
  /** Aborts the call. A request that was sent may still take effect. */
  readonly signal?: AbortSignal | undefined
}

type QueryValue = string | number | boolean | Date | undefined

/** Sends a request and resolves to its answer; a 4xx rejects. */
export async function ask<Result>(
  caller: Caller,
  method: Call['method'],
  path: string,
  {
    body,
    query = {},
    signal,
    timeoutMs,
  }: {
    readonly body?: unknown
    readonly query?: Readonly<Record<string, QueryValue>>
    readonly signal?: AbortSignal | undefined
    readonly timeoutMs?: number | undefined
  } = {},
): Promise<Result> {
  const answer = await caller.call({
    method,
    path: `${path}${queryText(query)}`,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
    timeoutMs,
  })
  return readAnswer<Result>(answer)
}

/** Reads one page after the other, as the loop asks for them. */
export async function* pages<Item>(
  caller: Caller,
  path: string,
  list: string,
  query: Readonly<Record<string, QueryValue>>,
  signal?: AbortSignal,
): AsyncGenerator<Item, undefined> {
  let cursor: string | undefined
  do {
    const page = await ask<Record<string, unknown>>(caller, 'GET', path, {
      query: { ...query, cursor },
      signal,
    })
    yield* page[list] as Item[]
    cursor = (page.cursor as string | null) ?? undefined
  } while (cursor !== undefined)
  return undefined
}

export function segment(name: string): string {
  return encodeURIComponent(name)
}

function queryText(values: Readonly<Record<string, QueryValue>>): string {
  const given = Object.entries(values).flatMap(([name, value]): [string, string][] =>
    value === undefined
      ? []
      : [[name, value instanceof Date ? value.toISOString() : String(value)]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
}
