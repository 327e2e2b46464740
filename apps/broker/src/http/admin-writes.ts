// Limits administrative writes. They bypass the sidecar, but may hang as well: each has a deadline, and few
// run at once, so that hanging calls cannot take the connections that messages need.
import { WriteQueue } from '@rouse/sidecar'
import type { FastifyInstance } from 'fastify'
import { toRouseError } from './errors.ts'

type Handling = () => Promise<unknown>

const writesMax = 2
const pendingMax = 1_000

export interface WriteLimits {
  readonly timeoutMs: number
  /** Called if a write may have been committed without a hint. */
  readonly onOutcomeUnknown: () => void
}

/** Applies to the routes registered after this call, except those that only read. */
export function limitWrites(app: FastifyInstance, limits: WriteLimits): void {
  const { timeoutMs, onOutcomeUnknown } = limits
  const queue = new WriteQueue<Handling, unknown>({
    slots: writesMax,
    patienceMs: 0,
    pendingMax,
    countMax: 1,
    bytesMax: 0,
    timeoutMs,
    async run([write]) {
      if (write?.send() !== true) return
      try {
        write.resolve(await write.input())
      } catch (error) {
        if (toRouseError(error).code === 'outcome_unknown') onOutcomeUnknown()
        write.reject(error)
      }
    },
  })
  app.addHook('onRoute', (route) => {
    if ([route.method].flat().includes('GET')) return
    const { handler } = route
    route.handler = function (request, reply) {
      return queue.submit(async () => handler.call(this, request, reply))
    }
  })
}
