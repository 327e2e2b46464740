// Administrative routes go past the sidecar, but what they write may hang as well. So they, too, are answered in time,
// and few of them are under way at once: those that hang must not take the connections that messages need.
import { WriteQueue } from '@rouse/sidecar'
import type { FastifyInstance } from 'fastify'
import { toRouseError } from './errors.ts'

type Handling = () => Promise<unknown>

const writesMax = 2
const pendingMax = 1_000

export interface WriteLimits {
  readonly timeoutMs: number
  /** What was written may be there, and nobody was told of it. */
  readonly onOutcomeUnknown: () => void
}

/** Holds for the routes that are added from now on; those that only read are left alone. */
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
