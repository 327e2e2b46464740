// Gives messages back when the client left before it can have read them.
//
// Three moments tell: the connection closes while the pop still waits (the signal aborts); it closes before the answer
// was handed to the system; or it breaks (reset, not closed in order) soon after, before the client has asked anything
// more on it. A client that read its answer and hung up in order keeps its lease.
import type { Socket } from 'node:net'
import type { Lease } from '@rouse/sidecar'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** A connection that breaks later than this after an answer has certainly taken it. */
const breakMsMax = 1_000

interface LastAnswer {
  readonly leaseIds: readonly string[]
  readonly atMs: number
}

export interface ClientWatch {
  /** Aborts when the client has gone before its answer was written. */
  readonly signal: AbortSignal
  /** The answer with these leases is about to be sent. False: the client has gone, and they were given back. */
  delivering(leases: readonly Lease[]): Promise<boolean>
}

export function createClientWatch(options: {
  readonly release: (leaseIds: readonly string[]) => void
  readonly nowMs: () => number
}): (request: FastifyRequest, reply: FastifyReply) => ClientWatch {
  const { release, nowMs } = options
  const lastAnswers = new WeakMap<Socket, LastAnswer>()
  const watched = new WeakSet<Socket>()

  function watchSocket(socket: Socket): void {
    lastAnswers.delete(socket)
    if (watched.has(socket)) return
    watched.add(socket)
    socket.once('close', (hadError: boolean) => {
      const last = lastAnswers.get(socket)
      if (hadError && last !== undefined && nowMs() - last.atMs < breakMsMax) release(last.leaseIds)
    })
  }

  return (request, reply) => {
    const { socket } = request.raw
    const gone = new AbortController()
    let leaseIds: readonly string[] = []
    watchSocket(socket)
    const leave = (): void => gone.abort()
    socket.once('end', leave)
    reply.raw.once('close', () => {
      socket.off('end', leave)
      gone.abort()
      if (leaseIds.length === 0) return
      if (reply.raw.writableFinished) lastAnswers.set(socket, { leaseIds, atMs: nowMs() })
      else release(leaseIds)
    })
    return {
      signal: gone.signal,
      async delivering(leases) {
        // One turn of the loop: a goodbye that has already arrived is read before the answer is written.
        await new Promise((resolve) => void setImmediate(resolve))
        const held = [...new Set(leases.map((lease) => lease.leaseId))]
        if (!gone.signal.aborted) {
          leaseIds = held
          return true
        }
        release(held)
        return false
      },
    }
  }
}
