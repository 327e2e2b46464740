// Administrative routes that read have slots of their own, so that listings, however many are asked for at once, do not
// take the connections that messages need.
import { RouseError } from '@rouse/protocol'
import type { FastifyInstance } from 'fastify'

const readsMax = 2
const waitingMax = 1_000

/** Holds for the routes that are added from now on; those that write have their own (admin-writes.ts). */
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

  /** In the order in which they came. Rejects where too many wait, or one has waited too long. */
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

  /** The slot passes on to the one that waits longest. */
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
  return new RouseError('overloaded', 'too many administrative reads wait for their turn')
}
