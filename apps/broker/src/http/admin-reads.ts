// Limits concurrent administrative reads, so that listings cannot take the connections that messages need.
import { RouseError } from '@rouse/protocol'
import type { FastifyInstance } from 'fastify'

const readsMax = 2
const waitingMax = 1_000

/** Applies to the routes registered after this call. Writes have their own limit (admin-writes.ts). */
export function limitReads(app: FastifyInstance, limits: { readonly timeoutMs: number }): void {
  const slots = new ReadSlots(limits.timeoutMs)
  app.addHook('onRoute', (route) => {
    if (![route.method].flat().includes('GET')) return
    const { handler } = route
    route.handler = async function (request, reply) {
      await slots.enter()
      try {
        return await handler.call(this, request, reply)
      } finally {
        slots.leave()
      }
    }
  })
}

class ReadSlots {
  readonly #timeoutMs: number
  readonly #waiting = new Set<() => void>()
  #busy = 0

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /** First come, first served. Rejects if too many callers wait or one has waited too long. */
  async enter(): Promise<void> {
    if (this.#busy < readsMax) {
      this.#busy += 1
      return
    }
    if (this.#waiting.size >= waitingMax) throw tooMany()
    await new Promise<void>((resolve, reject) => {
      const begin = (): void => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(begin)
        reject(tooMany())
      }, this.#timeoutMs)
      this.#waiting.add(begin)
    })
  }

  /** Passes the slot to the caller that has waited longest. */
  leave(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#busy -= 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}

function tooMany(): RouseError {
  return new RouseError('overloaded', 'too many administrative reads are waiting')
}
