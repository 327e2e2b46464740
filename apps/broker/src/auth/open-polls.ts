import type { ServerResponse } from 'node:http'
import { RouseError } from '@rouse/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { KeyRing } from './key-ring.ts'
import type { Principal } from './principal.ts'

/** The pops that have no response yet, and streams, so that they end when their API key or their token does. */
export class OpenPolls {
  readonly #open = new Map<FastifyReply, Principal>()
  readonly #streams = new Map<() => void, Principal>()

  add({ principal }: FastifyRequest, reply: FastifyReply): void {
    if (!canEnd(principal)) return
    this.#open.set(reply, principal)
    reply.raw.once('close', () => this.#open.delete(reply))
  }

  addStream(principal: Principal, response: ServerResponse, end: () => void): void {
    if (!canEnd(principal)) return
    this.#streams.set(end, principal)
    response.once('close', () => this.#streams.delete(end))
  }

  /**
   * Refuses the pops whose credential has ended. The route notices that the response is complete, like one whose client has
   * disconnected, and releases what it has popped.
   */
  endInvalid(ring: Pick<KeyRing, 'isValid'>, nowMs: number): void {
    const isValid = ({ keyId, endsAtMs = Number.POSITIVE_INFINITY }: Principal): boolean =>
      endsAtMs > nowMs && (keyId === undefined || ring.isValid(keyId))
    for (const [end, principal] of this.#streams) if (!isValid(principal)) end()
    for (const [reply, principal] of this.#open) {
      if (isValid(principal) || reply.sent) continue
      this.#open.delete(reply)
      const what = principal.keyId === undefined ? 'the credential' : 'the API key'
      void reply.send(
        new RouseError('unauthenticated', `${what} of this request has expired or was revoked`),
      )
    }
  }
}

function canEnd({ keyId, endsAtMs }: Principal): boolean {
  return keyId !== undefined || endsAtMs !== undefined
}
