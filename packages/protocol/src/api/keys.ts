// The routes that manage API keys and sessions, and show who did what.
import { AuditQuerySchema } from '../schemas/audit.ts'
import { KeyBodySchema, RotateKeyBodySchema, SessionBodySchema } from '../schemas/keys.ts'
import { type Endpoint, needs } from './endpoint.ts'

export const keyEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/api/v1/keys',
    summary: 'Creates an API key, and shows it once',
    needs: needs('admin', 'every'),
    body: KeyBodySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/keys',
    summary: 'Lists API keys, without their secrets',
    needs: needs('admin', 'every'),
  },
  {
    method: 'POST',
    path: '/api/v1/keys/:keyId/rotate',
    summary: 'Creates a key with the same name and grants; the old one ends after a while',
    needs: needs('admin', 'every'),
    body: RotateKeyBodySchema,
  },
  {
    method: 'DELETE',
    path: '/api/v1/keys/:keyId',
    summary: 'Revokes an API key',
    needs: needs('admin', 'every'),
  },
  {
    method: 'GET',
    path: '/api/v1/audit',
    summary: 'Lists who changed the cluster, and who was refused, newest first',
    needs: needs('admin', 'every'),
    query: AuditQuerySchema,
  },
  {
    method: 'POST',
    path: '/api/v1/session',
    summary: 'Signs a browser in with an API key or a code of the OIDC issuer: sets a cookie',
    needs: 'nothing',
    body: SessionBodySchema,
  },
  {
    method: 'GET',
    path: '/api/v1/session',
    summary: 'Shows who sends the request',
    needs: 'nothing',
  },
  {
    method: 'DELETE',
    path: '/api/v1/session',
    summary: 'Signs a browser out: removes the cookie',
    needs: 'nothing',
  },
]
