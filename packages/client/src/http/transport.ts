// Sends requests: by node:http under Node.js, by fetch on other platforms. Under Node.js a request by fetch
// costs three times as much as one by node:http.

/** One HTTP request. */
export interface TransportRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  /** Aborts the request; `send` then rejects. */
  readonly signal: AbortSignal
  /**
   * Aborts when the client stops waiting. The transport then half-closes the connection and keeps reading, so
   * that an answer already on its way still arrives. A transport that cannot half-close ignores this signal;
   * the client then aborts `signal` a little later.
   */
  readonly leave?: AbortSignal | undefined
}

/** The answer to a request. */
export interface TransportAnswer {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly text: string
}

/** Sends requests. Replace it to use another HTTP client. */
export interface Transport {
  send(request: TransportRequest): Promise<TransportAnswer>
  /** Closes idle connections. */
  close(): void
}

/** The request got no answer. */
export class TransportError extends Error {
  override readonly name = 'TransportError'
  /** False if the server cannot have received the request. */
  readonly maybeSent: boolean

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.maybeSent = !failedToConnect(cause)
  }
}

/**
 * Node.js reports which system call failed. Browsers do not: there, any failed request may have been sent.
 */
function failedToConnect(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { syscall } = error as { syscall?: unknown }
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true
  return error.cause === undefined ? false : failedToConnect(error.cause)
}
