// Messages pushed and acknowledged in transactions of the client's own, recorded like requests.
import { OutcomeUnknownError, withTransaction } from '@rouse/database'
import type pg from 'pg'
import type { Outcome, PushedItem } from '../history/records.ts'
import type { ChaosClient } from './chaos-client.ts'
import type { Heard } from './outcomes.ts'
import type { RawMessage } from './raw-client.ts'

/** A server that was frozen or cut off may never answer; the connection is then given up. */
const transactionMsMax = 15_000

class ChangedMind extends Error {}

/** All or none of the items; none where the client changes its mind. */
export async function enqueue(
  client: ChaosClient,
  items: readonly Pick<PushedItem, 'queue' | 'partition' | 'value'>[],
  { commits }: { readonly commits: boolean },
): Promise<Outcome> {
  const call = { kind: 'push', by: 'sql', items } as const
  const end = client.recorder.begin(call)
  const heard = await transact(client.sql(), async (connection) => {
    for (const { queue, partition, value } of items) {
      await connection.query('select rouse.enqueue($1, $2, partition => $3)', [
        queue,
        JSON.stringify({ v: value }),
        partition,
      ])
    }
    if (!commits) throw new ChangedMind('rolled back as intended')
  })
  end(call, heard)
  return commits ? heard.outcome : 'ok'
}

/** Completes the message together with whatever else the consumer writes. */
export async function ackInTransaction(client: ChaosClient, message: RawMessage): Promise<void> {
  const { leaseId, transactionId, partitionId, consumerGroup: group, data } = message
  const ack = { leaseId, transactionId, partitionId, value: data.v, status: 'completed' } as const
  const end = client.recorder.begin({ kind: 'ack', group, acks: [ack] })
  const heard = await transact(client.sql(), async (connection) => {
    await connection.query('select rouse.ack_in($1)', [leaseId])
  })
  const isStale = heard.code === 'RS409'
  const success = heard.outcome === 'ok' ? { success: true } : isStale ? { success: false } : {}
  end({ kind: 'ack', group, acks: [{ ...ack, ...success }] }, heard)
}

async function transact(
  pool: pg.Pool,
  work: (connection: pg.PoolClient) => Promise<void>,
): Promise<Heard> {
  let timer: NodeJS.Timeout | undefined
  try {
    await withTransaction(pool, async (connection) => {
      // With a query under way this destroys the connection, which fails the query.
      timer = setTimeout(() => void connection.end(), transactionMsMax)
      await work(connection)
    })
    return { outcome: 'ok' }
  } catch (error) {
    // Everything else was thrown before COMMIT was sent, or proves that nothing was committed.
    const outcome = error instanceof OutcomeUnknownError ? 'unknown' : 'fail'
    return { outcome, code: codeOf(error) }
  } finally {
    clearTimeout(timer)
  }
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
