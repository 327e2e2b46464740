// Consumers of one node hold leases, each on its own partition, and consumers on other nodes wait for the
// redeliveries. A partition has one message, so that no message waits for another.
import type pg from 'pg'
import type { RawClient } from '../../chaos/clients/raw-client.ts'
import { pass } from './load.ts'

export const leaseSeconds = 5

/** Starts a number of consumers, one after the other. Each pops one message and does not acknowledge it. */
export async function holdLeases(
  node: RawClient,
  { queue, count, overMs }: { queue: string; count: number; overMs: number },
): Promise<void> {
  await node.configure(queue, { leaseTime: leaseSeconds })
  await node.push(
    Array.from({ length: count }, (_, i) => ({
      queue,
      partition: String(i),
      payload: { v: String(i) },
    })),
  )
  const consumers = Array.from({ length: count }, async (_, i) => {
    await pass((i * overMs) / count)
    const { body = [] } = await node.pop({ queue, batch: 1, partitions: 1, waitMs: 0 })
    if (body.length !== 1) throw new Error('a message could not be leased')
  })
  await Promise.all(consumers)
}

/** Returns when the first lease of each partition expires, in ms since 1970. */
export async function firstLeases(pool: pg.Pool, queue: string): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ name: string; at: number }>(
    `select p.name, extract(epoch from l.expires_at)::double precision * 1000 as at
     from rouse.leases l
     join rouse.partitions p on p.id = l.partition_id
     join rouse.queues q on q.id = p.queue_id
     where q.name = $1 and l.attempt = 1`,
    [queue],
  )
  return new Map(rows.map(({ name, at }) => [name, at]))
}

export interface Waiters {
  /**
   * When the message of each partition was redelivered, in ms since 1970, by the clock of the machine that
   * runs PostgreSQL.
   */
  readonly cameAt: ReadonlyMap<string, number>
  stop(): Promise<void>
}

export function startWaiters(
  nodes: readonly RawClient[],
  { queue, perNode }: { queue: string; perNode: number },
): Waiters {
  const cameAt = new Map<string, number>()
  let waiting = true

  async function wait(node: RawClient): Promise<void> {
    while (waiting) {
      const { body = [] } = await node.pop({ queue, batch: 1, partitions: 1, waitMs: 2_000 })
      for (const { partition } of body) cameAt.set(String(partition), Date.now())
      if (body.length > 0) await node.ack(body)
    }
  }
  const all = nodes.flatMap((node) => Array.from({ length: perNode }, () => wait(node)))
  return {
    cameAt,
    async stop() {
      waiting = false
      await Promise.all(all)
    },
  }
}
