import { createKey, writeAudit } from '@rouse/storage'
import type pg from 'pg'
import type { Config } from '../config/config.ts'
import type { Logger } from '../log.ts'
import { apiKeyHash, apiKeyId } from './api-key.ts'
import { presetGrants } from './grants.ts'

/** Stores the key of ROUSE_INITIAL_ADMIN_KEY, with all grants, if there has never been a key. */
export async function registerInitialKey(
  pool: pg.Pool,
  { initialAdminKey: key, nodeId }: Pick<Config, 'initialAdminKey' | 'nodeId'>,
  log: Logger,
): Promise<void> {
  const id = key === undefined ? undefined : apiKeyId(key)
  if (key === undefined || id === undefined) return
  const isStored = await createKey(
    pool,
    {
      id,
      name: 'initial',
      hash: apiKeyHash(key),
      grants: presetGrants('admin'),
      limits: {},
      createdBy: 'ROUSE_INITIAL_ADMIN_KEY',
      expiresAt: null,
    },
    { onlyFirst: true },
  )
  if (!isStored) return
  log.info({ keyId: id }, 'stored the first API key')
  const detail = { event: 'key created', name: 'initial', grants: presetGrants('admin') }
  const entry = { verb: 'admin', target: id, outcome: 'done', detail } as const
  await writeAudit(pool, nodeId, [{ principal: 'ROUSE_INITIAL_ADMIN_KEY', ...entry }])
}
