// A steady load on every node: clients push, pop and acknowledge one message at a time, at a rate that leaves
// a small machine idle time. Each client has its own node and queue. While its node is down, a client uses
// the next node, as behind a balancer.

import type { RawClient } from '../../chaos/clients/raw-client.ts'
import { monotonicMs } from '../../chaos/history/clock.ts'
import type { Timed } from '../../chaos/history/slow-windows.ts'

export const operations = ['push', 'pop and ack'] as const

export interface TimedOperation extends Timed {
  readonly operation: (typeof operations)[number]
  /** The index of the node that served the request. */
  readonly node: number
  readonly ok: boolean
}

export interface RecoveryLoad {
  /** All operations that clients made on their own nodes. */
  readonly done: readonly TimedOperation[]
  stop(): Promise<void>
}

const clientsPerNode = 4
const paceMs = 200
/** Short, so that messages leased through a killed node are deliverable again before the node is back. */
const leaseSeconds = 1

export function startRecoveryLoad(nodes: readonly RawClient[]): RecoveryLoad {
  const done: TimedOperation[] = []
  let running = true

  async function work(node: number, number: number): Promise<void> {
    const own = nodes[node] as RawClient
    const next = nodes[(node + 1) % nodes.length] as RawClient
    const queue = `load-${node}-${number}`
    await own.configure(queue, { leaseTime: leaseSeconds })
    await pass((paceMs * number) / clientsPerNode)
    while (running) {
      const begun = monotonicMs()
      if (!(await timed(node, 'push', () => push(own, queue)))) await push(next, queue)
      if (!(await timed(node, 'pop and ack', () => popAndAck(own, queue)))) {
        await popAndAck(next, queue)
      }
      await pass(begun + paceMs - monotonicMs())
    }
  }

  async function timed(
    node: number,
    operation: TimedOperation['operation'],
    call: () => Promise<boolean>,
  ): Promise<boolean> {
    const start = monotonicMs()
    const ok = await call()
    done.push({ operation, node, ok, start, end: monotonicMs() })
    return ok
  }

  const all = nodes.flatMap((_, node) =>
    Array.from({ length: clientsPerNode }, (_, number) => work(node, number)),
  )
  return {
    done,
    async stop() {
      running = false
      await Promise.all(all)
    },
  }
}

async function push(node: RawClient, queue: string): Promise<boolean> {
  return (await node.push([{ queue, payload: { v: 'x' } }])).outcome === 'ok'
}

/** Pops and acknowledges a message. There is always one, because the caller has just pushed it. */
async function popAndAck(node: RawClient, queue: string): Promise<boolean> {
  const { body = [] } = await node.pop({ queue, batch: 1, partitions: 1, waitMs: 0 })
  return body.length === 1 && (await node.ack(body)).outcome === 'ok'
}

export function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)))
}
