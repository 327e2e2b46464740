// Finds what leases hold, before an ack or a transaction that does not name its messages by receipts. Lookups
// bypass the sidecar. Only a few run at once, so that hanging lookups do not take the connections that pushes,
// pops and acks need.
import { RouseError } from '@rouse/protocol'
import { WriteQueue } from '@rouse/sidecar'
import {
  type Executor,
  findHeld,
  type HeldName,
  type Holdings,
  holdingsOf,
  type MessageName,
  unnamed,
} from '@rouse/storage'
import type pg from 'pg'
import { runAdminQuery } from '../http/admin-query.ts'
import { toRouseError } from '../http/errors.ts'

export interface LeaseLookups {
  /** The seqs of messages that their leases hold, by `heldKey`. */
  readonly seqsOf: (names: readonly HeldName[]) => Promise<ReadonlyMap<string, number>>
  /** Which leases are live, and which of these messages they hold. */
  readonly holdingsOf: (
    leaseIds: readonly string[],
    names: readonly MessageName[],
  ) => Promise<Holdings>
}

const lookupsMax = 2
const pendingMax = 1_000
/** Lookups of messages share a call. */
const namesMax = 1_000

type Seqs = ReadonlyMap<string, number>
type Lookup =
  | { readonly kind: 'seqs'; readonly names: readonly HeldName[] }
  | {
      readonly kind: 'holdings'
      readonly leaseIds: readonly string[]
      readonly names: readonly MessageName[]
    }

export function createLeaseLookups(
  pool: pg.Pool,
  limits: { readonly timeoutMs: number },
): LeaseLookups {
  const executor = executorWithin(pool, limits.timeoutMs)

  async function lookUp(batch: readonly Lookup[]): Promise<Seqs | Holdings> {
    const [first] = batch as [Lookup]
    if (first.kind === 'holdings') return holdingsOf(pool, first.leaseIds, first.names, limits)
    const names = batch.flatMap((one) => (one.kind === 'seqs' ? one.names : []))
    const found = await findHeld(executor, names)
    return new Map(found.map((message) => [heldKey(message), message.seq]))
  }

  const queue = new WriteQueue<Lookup, Seqs | Holdings>({
    slots: lookupsMax,
    patienceMs: 0,
    pendingMax,
    countMax: namesMax,
    bytesMax: 0,
    joins: (first, other) => first.kind === 'seqs' && other.kind === 'seqs',
    ...limits,
    // Does not call `send()`: a lookup changes nothing, so a timeout leaves no unknown outcome.
    async run(batch) {
      const inputs = batch.map(({ input }) => input)
      try {
        const found = await runAdminQuery(pool, () => lookUp(inputs))
        for (const lookup of batch) lookup.resolve(found)
      } catch (error) {
        for (const lookup of batch) lookup.reject(nothingHappened(error))
      }
    },
  })
  return {
    seqsOf: (names) =>
      queue.submit({ kind: 'seqs', names }, { count: names.length, bytes: 0 }) as Promise<Seqs>,
    holdingsOf: (leaseIds, names) =>
      queue.submit({ kind: 'holdings', leaseIds, names }) as Promise<Holdings>,
  }
}

export function heldKey({ leaseId, partitionId, transactionId }: HeldName): string {
  return `${leaseId}/${partitionId}/${transactionId}`
}

/** After the time limit pg drops the connection, whatever the server does. */
function executorWithin(pool: pg.Pool, timeoutMs: number): Executor {
  return {
    query: (statement) => {
      const { values, ...rest } = unnamed(statement)
      const config = { ...rest, values: [...values], query_timeout: timeoutMs }
      return pool.query<unknown[]>(config)
    },
  }
}

/** A lookup changes nothing, so its outcome is never unknown. */
function nothingHappened(error: unknown): RouseError {
  const known = toRouseError(error)
  if (known.code !== 'outcome_unknown') return known
  return new RouseError('database_unavailable', undefined, { cause: error })
}
