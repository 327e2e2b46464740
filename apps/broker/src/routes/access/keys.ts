// API keys: create, list, rotate and revoke them. A key is shown once, when it is created.
import {
  type Key,
  type KeyBody,
  type KeysAnswer,
  type NewKeyAnswer,
  type RevokedKeyAnswer,
  type RotateKeyBody,
  RouseError,
} from '@rouse/protocol'
import { type KeyRow, listKeys, revokeKey } from '@rouse/storage'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { issueKey, readKeyRequest, rotateKey } from '../../auth/issue-key.ts'
import { runAdminQuery } from '../../http/admin-query.ts'
import { withoutNulls } from '../../http/json-body.ts'
import type { BrokerContext } from '../../worker/context.ts'

/** The newest keys, with those that have ended. */
const keysMax = 20_000
const graceSecondsDefault = 3_600

export function keyRoutes(app: FastifyInstance, context: BrokerContext): void {
  const { pool, clock, keysChanged } = context

  app.post(
    '/api/v1/keys',
    { preValidation: async (request) => void withoutNulls(request.body) },
    async (request, reply): Promise<NewKeyAnswer> => {
      const wanted = readKeyRequest(request.body as KeyBody)
      const { name } = request.principal
      const { key, ...row } = await runAdminQuery(pool, () => issueKey(pool, wanted, name))
      request.audited = { target: row.id, detail: { event: 'key created', ...describe(row) } }
      await keysChanged()
      reply.code(201)
      return { ...toKey(row), key }
    },
  )

  app.get('/api/v1/keys', async (): Promise<KeysAnswer> => {
    const keys = await runAdminQuery(pool, () => listKeys(pool, keysMax))
    return { keys: keys.map(toKey) }
  })

  app.post(
    '/api/v1/keys/:keyId/rotate',
    {
      preValidation: async (request) => {
        request.body ??= {}
        withoutNulls(request.body)
      },
    },
    async (request, reply): Promise<NewKeyAnswer> => {
      const id = keyIdOf(request)
      const { graceSeconds = graceSecondsDefault } = request.body as RotateKeyBody
      const { name } = request.principal
      const how = { graceMs: graceSeconds * 1_000, createdBy: name, nowMs: clock.wallMs() }
      const issued = await runAdminQuery(pool, () => rotateKey(pool, id, how))
      if (issued === undefined) throw noSuchKey(id)
      const { key, ...row } = issued
      const detail = { event: 'key rotated', newKey: row.id, graceSeconds, ...describe(row) }
      request.audited = { target: id, detail }
      await keysChanged()
      reply.code(201)
      return { ...toKey(row), key }
    },
  )

  app.delete('/api/v1/keys/:keyId', async (request): Promise<RevokedKeyAnswer> => {
    const id = keyIdOf(request)
    if (!(await runAdminQuery(pool, () => revokeKey(pool, id)))) throw noSuchKey(id)
    request.audited = { target: id, detail: { event: 'key revoked' } }
    await keysChanged()
    return { id, revoked: true }
  })
}

function keyIdOf(request: FastifyRequest): string {
  return (request.params as { readonly keyId: string }).keyId
}

function describe({ name, grants, limits, expiresAt }: KeyRow) {
  return { name, grants, limits, expiresAt }
}

function noSuchKey(id: string): RouseError {
  return new RouseError('not_found', `there is no live API key "${id}"`)
}

function toKey(row: KeyRow): Key {
  return {
    id: row.id,
    name: row.name,
    grants: [...row.grants],
    limits: row.limits,
    createdBy: row.createdBy,
    createdAt: row.createdAt.toISOString(),
    expiresAt: row.expiresAt?.toISOString() ?? null,
    revokedAt: row.revokedAt?.toISOString() ?? null,
    lastUsedDay: row.lastUsedDay,
  }
}
