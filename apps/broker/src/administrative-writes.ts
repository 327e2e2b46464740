// Administrative routes go past the sidecar, but what they write may hang as well. So they, too, are answered in time,
// and few of them are under way at once: those that hang must not take the connections that messages need.
import { WriteLine } from '@rouse/sidecar'
import type { FastifyInstance } from 'fastify'

type Handling = () => Promise<unknown>

const writesMax = 2
const pendingMax = 1_000

/** Holds for the routes that are added from now on; those that only read are left alone. */
export function limitWrites(app: FastifyInstance, timeoutMs: number): void {
  const line = new WriteLine<Handling, unknown>({
    slots: writesMax,
    patienceMs: 0,
    pendingMax,
    countMax: 1,
    bytesMax: 0,
    weigh: () => ({ count: 1, bytes: 0 }),
    timeoutMs,
    async run([write]) {
      if (write?.send())
        await write.input().then(write.resolve.bind(write), write.reject.bind(write))
    },
  })
  app.addHook('onRoute', (route) => {
    if ([route.method].flat().includes('GET')) return
    const { handler } = route
    route.handler = function (request, reply) {
      return line.submit(async () => handler.call(this, request, reply))
    }
  })
}
