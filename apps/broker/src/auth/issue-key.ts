// Creates and rotates API keys, for the routes and for the command line.
import { randomBytes } from 'node:crypto'
import { fieldError, type KeyBody, type KeyLimits, parseTime } from '@rouse/protocol'
import { createKey, findKey, type KeyRow, revokeKey } from '@rouse/storage'
import type pg from 'pg'
import { apiKeyHash, newApiKey } from './api-key.ts'
import { grantsMax, parseGrant, presetGrants } from './grants.ts'

export interface IssuedKey extends KeyRow {
  /** The key itself. It is not stored, so it cannot be shown again. */
  readonly key: string
}

export type KeyRequest = Pick<KeyRow, 'name' | 'grants' | 'limits' | 'expiresAt'>

/** What a key is to be: a preset, grants, or both. Throws an error that names the field. */
export function readKeyRequest(body: KeyBody): KeyRequest {
  const { name, preset, queue, grants: given = [], limits = {}, expiresAt } = body
  if (queue !== undefined && preset === undefined) {
    throw fieldError('invalid_request', 'queue', 'needs a preset; otherwise name it in grants')
  }
  if (queue !== undefined && preset === 'admin') {
    throw fieldError('invalid_request', 'queue', 'cannot limit the preset admin')
  }
  const ofPreset = preset === undefined ? [] : presetGrants(preset, queue)
  const grants = [...new Set([...ofPreset, ...given])]
  if (grants.length === 0) {
    throw fieldError('invalid_request', 'preset', 'or grants must be given')
  }
  if (grants.length > grantsMax) {
    throw fieldError('invalid_request', 'grants', `must have at most ${grantsMax} items`)
  }
  for (const [i, grant] of grants.entries()) {
    parseGrant(grant, i < ofPreset.length ? 'queue' : `grants[${i - ofPreset.length}]`)
  }
  return {
    name,
    grants,
    limits: definedOf(limits),
    expiresAt: expiresAt === undefined ? null : new Date(parseTime('expiresAt', expiresAt)),
  }
}

function definedOf(limits: KeyLimits): Record<string, number> {
  return Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined))
}

export async function issueKey(
  pool: pg.Pool,
  request: KeyRequest,
  createdBy: string,
): Promise<IssuedKey> {
  const { id, key } = newApiKey(randomBytes)
  const { name, grants, limits, expiresAt } = request
  const hash = apiKeyHash(key)
  await createKey(pool, { id, name, hash, grants, limits, createdBy, expiresAt })
  const row = await findKey(pool, id)
  if (row === undefined) throw new Error('a new API key is not in the database')
  return { ...row, key }
}

/** Undefined if no live key has this id. The old key ends after the grace period. */
export async function rotateKey(
  pool: pg.Pool,
  id: string,
  { graceMs, createdBy, nowMs }: { graceMs: number; createdBy: string; nowMs: number },
): Promise<IssuedKey | undefined> {
  const old = await findKey(pool, id)
  if (old === undefined || !isLive(old, nowMs)) return undefined
  // The new key exists before the old one ends: if this stops in between, both are valid.
  const issued = await issueKey(pool, old, createdBy)
  await revokeKey(pool, id, graceMs)
  return issued
}

export function isLive({ revokedAt, expiresAt }: KeyRow, nowMs: number): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt.getTime() > nowMs)
}
