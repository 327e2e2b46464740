import type pg from 'pg'
import { callStatement } from '../call.ts'

export interface NewKey {
  readonly id: string
  readonly name: string
  /** SHA-256 of the whole key. */
  readonly hash: Buffer
  readonly grants: readonly string[]
  readonly limits: Readonly<Record<string, number>>
  readonly createdBy: string
  readonly expiresAt: Date | null
}

/** A key as operators see it: nothing of its secret. */
export interface KeyRow {
  readonly id: string
  readonly name: string
  readonly grants: readonly string[]
  readonly limits: Readonly<Record<string, number>>
  readonly createdBy: string
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly revokedAt: Date | null
  /** A date without a time, by UTC. */
  readonly lastUsedDay: string | null
}

/** What a node needs to know to check credentials. It is sent between processes, so bytes are hex. */
export interface KeyTable {
  /** Whether there has ever been a key, live or not. */
  readonly hasKeys: boolean
  /** Signs requests between nodes. */
  readonly nodeSecret: string
  readonly keys: readonly LiveKey[]
}

export interface LiveKey {
  readonly id: string
  readonly name: string
  readonly hash: string
  readonly grants: readonly string[]
  readonly limits: Readonly<Record<string, number>>
  /** By the clock of the database; null: never. */
  readonly expiresAtMs: number | null
}

/** `onlyFirst`: stores the key only if there has never been one. Returns whether the key was stored. */
export async function createKey(
  pool: pg.Pool,
  key: NewKey,
  { onlyFirst = false }: { readonly onlyFirst?: boolean } = {},
): Promise<boolean> {
  const { id, name, hash, grants, limits, createdBy, expiresAt } = key
  const values = [id, name, hash, grants, JSON.stringify(limits), createdBy, expiresAt, onlyFirst]
  const [row] = await callStatement(
    pool,
    'select rouse.create_key($1, $2, $3, $4, $5, $6, $7, $8)',
    values,
  )
  return row?.[0] === true
}

/** Ends a key at once, or after a time. Returns whether a live key has this id. */
export async function revokeKey(pool: pg.Pool, id: string, afterMs = 0): Promise<boolean> {
  const [row] = await callStatement(pool, 'select rouse.revoke_key($1, $2)', [id, afterMs])
  return row?.[0] === true
}

export async function markKeysUsed(pool: pg.Pool, ids: readonly string[]): Promise<void> {
  await callStatement(pool, 'select rouse.mark_keys_used($1)', [ids])
}

/** All keys, newest first, also those that have ended. */
export async function listKeys(pool: pg.Pool, limit: number): Promise<KeyRow[]> {
  const rows = await callStatement(
    pool,
    `select id, name, grants, limits, created_by, created_at, expires_at, revoked_at, last_used_day::text
     from rouse.api_keys order by created_at desc, id limit $1`,
    [limit],
  )
  return rows.map(toKeyRow)
}

export async function findKey(pool: pg.Pool, id: string): Promise<KeyRow | undefined> {
  const [row] = await callStatement(
    pool,
    `select id, name, grants, limits, created_by, created_at, expires_at, revoked_at, last_used_day::text
     from rouse.api_keys where id = $1`,
    [id],
  )
  return row === undefined ? undefined : toKeyRow(row)
}

function toKeyRow(row: readonly unknown[]): KeyRow {
  const [id, name, grants, limits, createdBy, createdAt, expiresAt, revokedAt, lastUsedDay] = row
  const key = { id, name, grants, limits, createdBy, createdAt, expiresAt, revokedAt, lastUsedDay }
  return key as unknown as KeyRow
}

/** Reads every live key, in one statement. Ids are sorted, so that equal tables have equal texts. */
export async function readKeyTable(pool: pg.Pool): Promise<KeyTable> {
  const [row] = await callStatement(
    pool,
    `select exists (select from rouse.api_keys),
       (select encode(secret, 'hex') from rouse.node_secret),
       (select coalesce(json_agg(json_build_object('id', k.id, 'name', k.name, 'hash', encode(k.hash, 'hex'),
            'grants', k.grants, 'limits', k.limits,
            'expiresAtMs', floor(extract(epoch from k.expires_at) * 1000)) order by k.id), '[]')
        from rouse.api_keys k
        where k.revoked_at is null and (k.expires_at is null or k.expires_at > rouse.now()))`,
  )
  const [hasKeys, nodeSecret, keys] = row as [boolean, string, KeyTable['keys']]
  return { hasKeys, nodeSecret, keys }
}
