import type pg from 'pg'
import { callStatement } from '../call.ts'

export interface MessageName {
  readonly partitionId: string
  readonly transactionId: string
}

export interface HeldMessage extends MessageName {
  readonly leaseId: string
  readonly seq: number
}

export interface Holdings {
  /** The leases that are currently held. */
  readonly live: ReadonlySet<string>
  /** Ordered by seq. */
  readonly messages: readonly HeldMessage[]
}

/**
 * Finds which of these messages the leases still hold. This only reads: a later write must check the lease
 * again.
 */
export async function holdingsOf(
  pool: pg.Pool,
  leaseIds: readonly string[],
  names: readonly MessageName[],
  limits: { readonly timeoutMs: number },
): Promise<Holdings> {
  const rows = await callStatement(
    pool,
    `select s.id, s.partition_id::text, m.seq::float8, m.transaction_id
     from rouse.leases s
     left join lateral (
       select m.seq, coalesce(m.transaction_id, m.partition_id || '-' || m.seq) as transaction_id
       from unnest(rouse.held_seqs(s.from_seq, s.unacked)) h(seq)
       join rouse.messages m on m.partition_id = s.partition_id and m.seq = h.seq
       where s.partition_id::text = any ($2::text[])
     ) m on m.transaction_id = any ($3::text[])
     where s.id = any ($1::uuid[]) and s.expires_at > rouse.now()
     order by m.seq`,
    [
      leaseIds,
      [...new Set(names.map((name) => name.partitionId))].filter(isStorable),
      names.map((name) => name.transactionId).filter(isStorable),
    ],
    limits,
  )
  const held = rows.filter((row) => row[2] !== null) as [string, string, number, string][]
  return {
    live: new Set(rows.map((row) => row[0] as string)),
    messages: held.map(([leaseId, partitionId, seq, transactionId]) => {
      return { leaseId, partitionId, seq, transactionId }
    }),
  }
}

/** PostgreSQL text cannot contain NUL, so no stored id does. */
function isStorable(text: string): boolean {
  return !text.includes('\0')
}
