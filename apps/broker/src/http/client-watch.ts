// Gives messages back when the client left before it can have read them.
//
// Two events prove that: the connection closes while the pop still waits (the signal aborts), or before the
// response was passed to the system. A later reset proves nothing: a proxy such as HAProxy may reset the
// connection within a millisecond after it forwarded the response, while its client already processes the
// message.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { LeaveSignal } from '@rouse/sidecar'
import type { Lease } from '@rouse/storage'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Watches one request until its response is sent. Thousands wait at once, so it is small. */
export interface ClientWatch extends LeaveSignal {
  /** Call before sending these leases. False: the client has left, and the leases were given back. */
  delivering(leases: readonly Lease[]): Promise<boolean>
}

interface WatchOptions {
  readonly release: (leaseIds: readonly string[]) => void
}

export function createClientWatch(
  options: WatchOptions,
): (request: FastifyRequest, reply: FastifyReply) => ClientWatch {
  return (request, reply) => new WatchedClient(request.raw.socket, reply.raw, options)
}

class WatchedClient implements ClientWatch {
  readonly #socket: Socket
  readonly #response: ServerResponse
  readonly #options: WatchOptions
  readonly #leave = (): void => this.#gone()
  #onGone: (() => void) | undefined
  #leaseIds: readonly string[] = []
  aborted = false

  constructor(socket: Socket, response: ServerResponse, options: WatchOptions) {
    this.#socket = socket
    this.#response = response
    this.#options = options
    socket.on('end', this.#leave)
    response.on('close', () => this.#closed())
  }

  /** The pop is the only listener. */
  addEventListener(_type: 'abort', listener: () => void): void {
    this.#onGone = listener
  }

  removeEventListener(): void {
    this.#onGone = undefined
  }

  async delivering(leases: readonly Lease[]): Promise<boolean> {
    // One turn of the event loop: a FIN that has already arrived is read before the response is written.
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
    if (this.#leaseIds.length > 0 && !this.#response.writableFinished) {
      this.#options.release(this.#leaseIds)
    }
  }
}
