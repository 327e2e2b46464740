// Limits the administrative calls of a worker. These calls bypass the sidecar and may hang. Only a few run at
// once, so that they do not take the connections that pushes, pops and acks need.
import { RouseError } from '@rouse/protocol'
import { WriteQueue } from '@rouse/sidecar'
import type { FastifyInstance, RouteHandlerMethod } from 'fastify'
import { toRouseError } from './errors.ts'

const readsMax = 2
const writesMax = 2
const waitingMax = 1_000

export interface AdminLimits {
  readonly timeoutMs: number
  /** Shared with routes that read only for a part of their time. */
  readonly reads: ReadSlots
  /** Called if a write may have been committed without a hint. */
  readonly onOutcomeUnknown: () => void
}

/** Limits all routes that are registered after this call, in `app` and in its plugins. */
export function limitAdminCalls(app: FastifyInstance, limits: AdminLimits): void {
  const limitRead = createReadLimit(limits.reads)
  const limitWrite = createWriteLimit(limits)
  app.addHook('onRoute', (route) => {
    const isRead = ['GET', 'HEAD'].includes(String(route.method))
    route.handler = isRead ? limitRead(route.handler) : limitWrite(route.handler)
  })
}

type Limit = (handler: RouteHandlerMethod) => RouteHandlerMethod

function createReadLimit(slots: ReadSlots): Limit {
  return (handler) =>
    function (request, reply) {
      return slots.use(async () => handler.call(this, request, reply))
    }
}

/** Writes also have a deadline, so that the client gets a response even if the call hangs. */
function createWriteLimit({ timeoutMs, onOutcomeUnknown }: AdminLimits): Limit {
  const queue = new WriteQueue<() => Promise<unknown>, unknown>({
    slots: writesMax,
    patienceMs: 0,
    pendingMax: waitingMax,
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
  return (handler) =>
    function (request, reply) {
      return queue.submit(async () => handler.call(this, request, reply))
    }
}

export class ReadSlots {
  readonly #timeoutMs: number
  readonly #waiting = new Set<() => void>()
  #busy = 0

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /** First come, first served. Rejects if too many callers wait already or this one has waited too long. */
  async use<Result>(read: () => Promise<Result>): Promise<Result> {
    await this.#enter()
    try {
      return await read()
    } finally {
      this.#leave()
    }
  }

  async #enter(): Promise<void> {
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
  #leave(): void {
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
