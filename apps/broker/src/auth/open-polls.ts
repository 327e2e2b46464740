import { RouseError } from '@rouse/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { KeyRing } from './key-ring.ts'

/** The pops of API keys that have no response yet, so that they end when their key does. */
export class OpenPolls {
  readonly #open = new Map<FastifyReply, string>()

  add({ principal }: FastifyRequest, reply: FastifyReply): void {
    if (principal.keyId === undefined) return
    this.#open.set(reply, principal.keyId)
    reply.raw.once('close', () => this.#open.delete(reply))
  }

  /**
   * Refuses the pops whose key has ended. The route notices that the response is complete, like one whose client has
   * disconnected, and releases what it has popped.
   */
  endInvalid(ring: Pick<KeyRing, 'isValid'>): void {
    for (const [reply, keyId] of this.#open) {
      if (ring.isValid(keyId) || reply.sent) continue
      this.#open.delete(reply)
      void reply.send(
        new RouseError('unauthenticated', 'the API key of this request has expired or was revoked'),
      )
    }
  }
}
