// How requests are sent: in Node by node:http, at a third of the cost of its fetch; elsewhere by fetch.

export interface TransportRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  /** Aborts the request; `send` then rejects. */
  readonly signal: AbortSignal
  /**
   * Aborts when the client stops waiting but still reads: the server sees a half-close, and an answer that is
   * already on its way still arrives. A transport that cannot do that ignores it; `signal` follows.
   */
  readonly leave?: AbortSignal | undefined
}

export interface TransportAnswer {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly text: string
}

export interface Transport {
  send(request: TransportRequest): Promise<TransportAnswer>
  /** Closes idle connections. */
  close(): void
}

/** The request got no answer. */
export class TransportError extends Error {
  override readonly name = 'TransportError'
  /** False: the server cannot have seen the request. */
  readonly maybeSent: boolean

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.maybeSent = !failedToConnect(cause)
  }
}

/** Node reports which system call failed; browsers do not, so there the request may always have been sent. */
function failedToConnect(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { syscall } = error as { syscall?: unknown }
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true
  return error.cause === undefined ? false : failedToConnect(error.cause)
}
