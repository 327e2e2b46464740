// Pushes and acks in the client's own transactions, recorded like requests.
import type { Message } from '@rouse/client'
import { fromPg, type SqlExecutor } from '@rouse/client/sql'
import { OutcomeUnknownError, withTransaction } from '@rouse/database'
import type pg from 'pg'
import type { Outcome, PushedItem } from '../history/records.ts'
import type { ChaosClient } from './chaos-client.ts'
import type { CallResult } from './outcomes.ts'
import type { Payload } from './wire-call.ts'

/**
 * The time limit of a transaction. A frozen or unreachable server may never respond, so the connection is
 * then closed.
 */
const transactionMsMax = 15_000

class RolledBack extends Error {}

/** Enqueues all items, or none if the client rolls back. */
export async function enqueue(
  client: ChaosClient,
  items: readonly Pick<PushedItem, 'queue' | 'partition' | 'value'>[],
  { commits }: { readonly commits: boolean },
): Promise<Outcome> {
  const call = { kind: 'push', by: 'sql', items } as const
  const end = client.recorder.begin(call)
  const result = await transact(client.sql(), async (connection) => {
    for (const { queue, partition, value } of items) {
      await connection.query('select rouse.enqueue($1, $2, partition => $3)', [
        queue,
        JSON.stringify({ v: value }),
        partition,
      ])
    }
    if (!commits) throw new RolledBack('rolled back as intended')
  })
  end(call, result)
  return commits ? result.outcome : 'ok'
}

type Delivered = Pick<
  Message<Payload>,
  'receipt' | 'transactionId' | 'partitionId' | 'consumerGroup' | 'data'
>

/** Completes the message in the consumer's own transaction. `ackIn`: by this call of the SDK. */
export async function ackInTransaction(
  client: ChaosClient,
  message: Delivered,
  ackIn?: (executor: SqlExecutor) => Promise<void>,
): Promise<Outcome> {
  const { transactionId, partitionId, consumerGroup: group, data } = message
  const receipt = message.receipt ?? ''
  const ack = { receipt, transactionId, partitionId, value: data.v, status: 'completed' } as const
  const end = client.recorder.begin({ kind: 'ack', group, acks: [ack] })
  const result = await transact(client.sql(), async (connection) => {
    if (ackIn === undefined) await connection.query('select rouse.ack_in($1)', [receipt])
    else await ackIn(fromPg(connection))
  })
  const isStale = result.code === 'RS409' || result.code === 'lease_lost'
  const success = result.outcome === 'ok' ? { success: true } : isStale ? { success: false } : {}
  end({ kind: 'ack', group, acks: [{ ...ack, ...success }] }, result)
  return result.outcome
}

async function transact(
  pool: pg.Pool,
  work: (connection: pg.PoolClient) => Promise<void>,
): Promise<CallResult> {
  let timer: NodeJS.Timeout | undefined
  try {
    await withTransaction(pool, async (connection) => {
      // Destroys the connection, which fails the query in progress.
      timer = setTimeout(() => void connection.end(), transactionMsMax)
      await work(connection)
    })
    return { outcome: 'ok' }
  } catch (error) {
    // Any other error was thrown before COMMIT was sent, or proves that nothing was committed.
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
