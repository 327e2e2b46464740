// Requests and answers of the node in memory.
import type { MemoryServer } from './memory-server.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies are JSON of every shape
export type Body = any

export interface MemoryRequest {
  readonly method: string
  /** Decoded, without `/api/v1`. */
  readonly path: readonly string[]
  readonly query: URLSearchParams
  readonly body: Body
  readonly signal: AbortSignal
  readonly leave: AbortSignal | undefined
}

export interface MemoryAnswer {
  readonly status: number
  readonly body?: unknown
}

export type MemoryRoutes = (
  server: MemoryServer,
  request: MemoryRequest,
) => MemoryAnswer | Promise<MemoryAnswer> | undefined

export function problem(status: number, code: string, detail: string): MemoryAnswer {
  return { status, body: { code, detail, status, retryable: false } }
}
