import type { WakeHint } from '@rouse/protocol'
import type pg from 'pg'
import { callStatement } from '../call.ts'
import { hintFields, readWakeHint } from '../wake-hint.ts'

/** Selects dead letters. The field names are those of the API. */
export interface LetterFilter {
  readonly consumerGroup?: string | undefined
  readonly partition?: string | undefined
  readonly errorCode?: string | undefined
  readonly errorMessage?: string | undefined
  readonly transactionId?: string | undefined
  /** Times of the failure, as ISO texts. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** Ids of dead letters or of messages. */
  readonly ids?: readonly string[] | undefined
}

export interface LetterGroup {
  readonly queue: string
  readonly consumerGroup: string
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly count: number
  readonly firstFailedAt: Date
  readonly lastFailedAt: Date
}

export async function deadLetterGroups(
  pool: pg.Pool,
  filter: { readonly queue: string | undefined; readonly group: string | undefined },
  limit: number,
): Promise<LetterGroup[]> {
  const rows = await callStatement(
    pool,
    `select queue, consumer_group, error_code, error_message, count::float8, first_failed_at, last_failed_at
     from rouse.dead_letter_groups($1, $2, $3)`,
    [filter.queue, filter.group, limit],
  )
  return rows.map((row) => ({
    queue: row[0] as string,
    consumerGroup: row[1] as string,
    errorCode: row[2] as string | null,
    errorMessage: row[3] as string | null,
    count: row[4] as number,
    firstFailedAt: row[5] as Date,
    lastFailedAt: row[6] as Date,
  }))
}

const purgedPerStep = 5_000

/** Deletes dead letters permanently; resolves to their number. Dead letters that arrive meanwhile stay. */
export async function purgeLetters(
  pool: pg.Pool,
  queue: string,
  where: LetterFilter,
): Promise<number> {
  let upTo: unknown = null
  for (let total = 0; ; ) {
    const [row] = await callStatement(
      pool,
      'select purged::float8, up_to from rouse.purge_letters($1, $2, $3, $4)',
      [queue, JSON.stringify(where), upTo, purgedPerStep],
    )
    const purged = row?.[0] as number
    upTo = row?.[1]
    total += purged
    if (purged < purgedPerStep) return total
  }
}

export interface LetterCount {
  readonly partition: string | null
  readonly consumerGroup: string
  readonly count: number
}

export async function countLetters(
  pool: pg.Pool,
  queue: string,
  where: LetterFilter,
): Promise<LetterCount[]> {
  const rows = await callStatement(
    pool,
    'select partition, consumer_group, count::float8 from rouse.count_letters($1, $2)',
    [queue, JSON.stringify(where)],
  )
  return rows.map(([partition, group, count]) => ({
    partition: partition as string | null,
    consumerGroup: group as string,
    count: count as number,
  }))
}

export interface RedriveRow {
  readonly id: string
  readonly queue: string
  readonly state: 'running' | 'done' | 'cancelled'
  readonly moved: number
  readonly total: number
  readonly rate: number | null
  readonly startedAt: Date
  readonly updatedAt: Date
}

const redriveColumns =
  'id, queue, state, moved::float8, total::float8, rate_per_second, started_at, updated_at'

export async function startRedrive(
  pool: pg.Pool,
  redrive: {
    readonly id: string
    readonly queue: string
    readonly where: LetterFilter
    readonly rate: number | undefined
  },
): Promise<RedriveRow> {
  const [row] = await callStatement(
    pool,
    `select ${redriveColumns} from rouse.start_redrive($1, $2, $3, $4)`,
    [redrive.id, redrive.queue, JSON.stringify(redrive.where), redrive.rate],
  )
  return readRedrive(row as unknown[])
}

/** Undefined if there is no redrive with this id. */
export async function findRedrive(pool: pg.Pool, id: string): Promise<RedriveRow | undefined> {
  const sql = `select ${redriveColumns} from rouse.redrives where id = $1`
  const [row] = await callStatement(pool, sql, [id])
  return row === undefined ? undefined : readRedrive(row)
}

export async function cancelRedrive(pool: pg.Pool, id: string): Promise<RedriveRow | undefined> {
  const sql = `select ${redriveColumns} from rouse.cancel_redrive($1)`
  const [row] = await callStatement(pool, sql, [id])
  return row === undefined ? undefined : readRedrive(row)
}

/** Runs one step of a redrive. Resolves to undefined if no step is due or another node runs it. */
export async function redriveStep(
  pool: pg.Pool,
  holder: string,
): Promise<{ readonly woken: WakeHint[]; readonly nextInMs: number | null } | undefined> {
  const rows = await callStatement(
    pool,
    `select wait_ms::float8, ${hintFields} from rouse.redrive_step($1)`,
    [holder],
  )
  const last = rows.pop()
  if (last === undefined) return undefined
  return { woken: rows.map((row) => readWakeHint(row, 1)), nextInMs: last[0] as number | null }
}

function readRedrive(row: readonly unknown[]): RedriveRow {
  return {
    id: row[0] as string,
    queue: row[1] as string,
    state: row[2] as RedriveRow['state'],
    moved: row[3] as number,
    total: row[4] as number,
    rate: row[5] as number | null,
    startedAt: row[6] as Date,
    updatedAt: row[7] as Date,
  }
}
