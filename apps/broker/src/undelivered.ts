// Gives messages back when the client left before it can have read them.
//
// Three moments tell: the connection closes while the pop still waits (the signal aborts); it closes before the answer
// was handed to the system; or it breaks (reset, not closed in order) soon after, before the client has asked anything
// more on it. A client that read its answer and hung up in order keeps its lease.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Lease, LeaveSignal } from '@rouse/sidecar'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** A connection that breaks later than this after an answer has certainly taken it. */
const breakMsMax = 1_000

/** One client's request, watched until its answer is out. Thousands wait at once, so it holds little. */
export interface ClientWatch extends LeaveSignal {
  /** The answer with these leases is about to be sent. False: the client has gone, and they were given back. */
  delivering(leases: readonly Lease[]): Promise<boolean>
}

interface WatchOptions {
  readonly release: (leaseIds: readonly string[]) => void
  readonly nowMs: () => number
}

export function createClientWatch(
  options: WatchOptions,
): (request: FastifyRequest, reply: FastifyReply) => ClientWatch {
  const lastAnswers = new LastAnswers(options)
  return (request, reply) => {
    const { socket } = request.raw
    lastAnswers.readBy(socket)
    return new WatchedClient(socket, reply.raw, lastAnswers, options)
  }
}

class WatchedClient implements ClientWatch {
  readonly #socket: Socket
  readonly #response: ServerResponse
  readonly #lastAnswers: LastAnswers
  readonly #options: WatchOptions
  readonly #leave = (): void => this.#gone()
  #onGone: (() => void) | undefined
  #leaseIds: readonly string[] = []
  aborted = false

  constructor(
    socket: Socket,
    response: ServerResponse,
    lastAnswers: LastAnswers,
    options: WatchOptions,
  ) {
    this.#socket = socket
    this.#response = response
    this.#lastAnswers = lastAnswers
    this.#options = options
    socket.on('end', this.#leave)
    response.on('close', () => this.#closed())
  }

  /** There is one who listens: the pop. */
  addEventListener(_type: 'abort', listener: () => void): void {
    this.#onGone = listener
  }

  removeEventListener(): void {
    this.#onGone = undefined
  }

  async delivering(leases: readonly Lease[]): Promise<boolean> {
    // One turn of the loop: a goodbye that has already arrived is read before the answer is written.
    await new Promise((resolve) => void setImmediate(resolve))
    const held = [...new Set(leases.map((lease) => lease.leaseId))]
    if (!this.aborted) {
      this.#leaseIds = held
      return true
    }
    this.#options.release(held)
    return false
  }

  #gone(): void {
    if (this.aborted) return
    this.aborted = true
    this.#onGone?.()
    this.#onGone = undefined
  }

  #closed(): void {
    this.#socket.off('end', this.#leave)
    this.#gone()
    if (this.#leaseIds.length === 0) return
    if (this.#response.writableFinished) this.#lastAnswers.written(this.#socket, this.#leaseIds)
    else this.#options.release(this.#leaseIds)
  }
}

/** What was last answered on each connection, until the client asks more on it and so shows that it has read it. */
class LastAnswers {
  readonly #options: WatchOptions
  readonly #answers = new WeakMap<Socket, { leaseIds: readonly string[]; atMs: number }>()
  readonly #watched = new WeakSet<Socket>()

  constructor(options: WatchOptions) {
    this.#options = options
  }

  readBy(socket: Socket): void {
    this.#answers.delete(socket)
  }

  written(socket: Socket, leaseIds: readonly string[]): void {
    this.#answers.set(socket, { leaseIds, atMs: this.#options.nowMs() })
    if (this.#watched.has(socket)) return
    this.#watched.add(socket)
    socket.once('close', (hadError: boolean) => this.#closed(socket, hadError))
  }

  #closed(socket: Socket, hadError: boolean): void {
    const last = this.#answers.get(socket)
    if (!hadError || last === undefined) return
    if (this.#options.nowMs() - last.atMs < breakMsMax) this.#options.release(last.leaseIds)
  }
}
