import type pg from 'pg'
import { callStatement } from '../call.ts'

/** What is recorded of an action, or of a refused request. */
export interface AuditEntry {
  readonly principal: string
  readonly keyId?: string | undefined
  readonly address?: string | undefined
  readonly verb: string
  /** The queue, or what else the action is about; `*` if it is about all of them. */
  readonly target: string
  readonly outcome: 'done' | 'refused' | 'failed'
  readonly requestId?: string | undefined
  readonly detail?: Readonly<Record<string, unknown>> | undefined
}

export interface AuditRow {
  readonly id: string
  readonly at: Date
  readonly node: string
  readonly principal: string
  readonly keyId: string | null
  readonly address: string | null
  readonly verb: string
  readonly target: string
  readonly outcome: string
  readonly requestId: string | null
  readonly detail: Readonly<Record<string, unknown>>
}

export interface AuditFilter {
  /** Only entries before this one. */
  readonly before?: string | undefined
  readonly limit: number
  readonly principal?: string | undefined
  readonly target?: string | undefined
  readonly outcome?: string | undefined
}

export async function writeAudit(
  pool: pg.Pool,
  node: string,
  entries: readonly AuditEntry[],
): Promise<void> {
  await callStatement(pool, 'select rouse.write_audit($1, $2)', [node, JSON.stringify(entries)])
}

/** Newest first. */
export async function readAudit(pool: pg.Pool, filter: AuditFilter): Promise<AuditRow[]> {
  const { before, limit, principal, target, outcome } = filter
  const rows = await callStatement(
    pool,
    `select a.id::text, at, node, principal, key_id, address, verb, target, outcome, request_id, detail from rouse.audit a
     where ($1::bigint is null or a.id < $1) and ($3::text is null or principal = $3)
       and ($4::text is null or target = $4) and ($5::text is null or outcome = $5)
     order by a.id desc limit $2`,
    [before, limit, principal, target, outcome],
  )
  return rows.map((row) => {
    const [id, at, node, by, keyId, address, verb, on, result, requestId, detail] = row
    const entry = { id, at, node, principal: by, keyId, address, verb, target: on }
    return { ...entry, outcome: result, requestId, detail } as unknown as AuditRow
  })
}

/** Removes entries older than this, but none of the last day. Returns how many. */
export async function pruneAudit(
  pool: pg.Pool,
  olderThanMs: number,
  rowsMax: number,
): Promise<number> {
  const [row] = await callStatement(pool, 'select rouse.prune_audit($1, $2)', [
    olderThanMs,
    rowsMax,
  ])
  return row?.[0] as number
}
