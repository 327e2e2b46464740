// Releases the leases of a response if the client disconnected before it can have read that response.
//
// There are two such cases: the connection closes while the pop still waits (the signal aborts), or before
// the whole response was passed to the operating system. A later reset proves nothing: a proxy such as
// HAProxy may reset the connection within a millisecond after it forwarded the response, while the client
// behind the proxy already processes the message.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { LeaveSignal } from '@rouse/sidecar'
import type { Lease } from '@rouse/storage'
import type { FastifyReply, FastifyRequest } from 'fastify'

interface Leases {
  release(leaseIds: readonly string[]): void
}

/** Watches one request until its response is sent. Thousands of requests wait at once, so it is small. */
export class ClientWatch implements LeaveSignal {
  readonly #socket: Socket
  readonly #response: ServerResponse
  readonly #leases: Leases
  readonly #leave = (): void => this.#gone()
  #onGone: (() => void) | undefined
  #leaseIds: readonly string[] = []
  aborted = false

  constructor(request: FastifyRequest, reply: FastifyReply, leases: Leases) {
    this.#socket = request.raw.socket
    this.#response = reply.raw
    this.#leases = leases
    this.#socket.on('end', this.#leave)
    this.#response.on('close', () => this.#closed())
  }

  /** The pop is the only listener. */
  addEventListener(_type: 'abort', listener: () => void): void {
    this.#onGone = listener
  }

  removeEventListener(): void {
    this.#onGone = undefined
  }

  /**
   * Call before sending these leases. False: the client has disconnected or got another response, such as that its
   * key has ended, and the leases are released.
   */
  async delivering(leases: readonly Lease[]): Promise<boolean> {
    // One turn of the event loop: a FIN that has already arrived is read before the response is written.
    await new Promise((resolve) => void setImmediate(resolve))
    const held = [...new Set(leases.map((lease) => lease.leaseId))]
    if (!this.aborted && !this.#response.writableEnded) {
      this.#leaseIds = held
      return true
    }
    this.#leases.release(held)
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
      this.#leases.release(this.#leaseIds)
    }
  }
}
