import {
  type AuditAnswer,
  type AuditEntryAnswer,
  auditOutcomes,
  fieldError,
  parseChoice,
  parseDecimal,
  readFields,
  requestDefaults,
} from '@rouse/protocol'
import { type AuditRow, readAudit } from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import { runAdminQuery } from '../../http/admin-query.ts'
import { readText } from '../../http/page.ts'
import type { BrokerContext } from '../../worker/context.ts'

type Query = Readonly<Record<string, unknown>>

/** The audit log, newest first. */
export function auditRoute(app: FastifyInstance, { pool, limits }: BrokerContext): void {
  app.get('/api/v1/audit', async (request): Promise<AuditAnswer> => {
    const filter = readFilter(request.query as Query, limits.pageSizeMax)
    const rows = await runAdminQuery(pool, () => readAudit(pool, filter))
    const last = rows.length < filter.limit ? undefined : rows.at(-1)
    return { entries: rows.map(toEntry), cursor: last?.id ?? null }
  })
}

function readFilter(query: Query, limitMax: number) {
  const { limit, cursor, principal, target, outcome } = query
  const optional = <Value>(value: unknown, read: (given: unknown) => Value) =>
    value === undefined ? undefined : read(value)
  return readFields({
    limit: () =>
      optional(limit, (given) => parseDecimal('limit', given, { min: 1, max: limitMax })) ??
      requestDefaults.pageSize,
    before: () => optional(cursor, readCursor),
    principal: () => optional(principal, (given) => readText('principal', given)),
    target: () => optional(target, (given) => readText('target', given)),
    outcome: () => optional(outcome, (given) => parseChoice('outcome', given, auditOutcomes)),
  })
}

function readCursor(cursor: unknown): string {
  if (typeof cursor === 'string' && /^[1-9]\d{0,17}$/.test(cursor)) return cursor
  throw fieldError('invalid_request', 'cursor', 'must be a cursor from a response')
}

function toEntry({ at, outcome, ...row }: AuditRow): AuditEntryAnswer {
  return { ...row, at: at.toISOString(), outcome: outcome as AuditEntryAnswer['outcome'] }
}
