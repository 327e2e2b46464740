// How bytes travel. In Node by node:http, whose requests cost a third of what its fetch does; elsewhere by fetch.

export interface TransportRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  /** Aborts the request; `send` then rejects. */
  readonly signal: AbortSignal
  /**
   * Aborts when the client stops waiting but still reads: the server is told (a half-close), and an answer that is
   * already on its way arrives. A transport that cannot do that ignores it; `signal` follows.
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
  /** Lets go of idle connections. */
  close(): void
}

/** No answer came. */
export class TransportError extends Error {
  override readonly name = 'TransportError'
  /** False: the server cannot have seen the request. */
  readonly maybeSent: boolean

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.maybeSent = !failedToConnect(cause)
  }
}

/** Node says which call to the system failed; browsers do not, and there it may always have been sent. */
function failedToConnect(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { syscall } = error as { syscall?: unknown }
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true
  return error.cause === undefined ? false : failedToConnect(error.cause)
}
