// Records every action that needs `manage` or `admin`, before its response is sent, and a sample of refused requests.
import { type Endpoint, endpoints, type RouseError, type Verb } from '@rouse/protocol'
import type { AuditEntry } from '@rouse/storage'
import type { FastifyInstance, FastifyRequest, onSendHookHandler } from 'fastify'
import { apiKeyId } from '../auth/api-key.ts'
import type { AuditLog } from '../auth/audit-log.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** What the route adds to the audit entry of the request. */
    audited?: { readonly target?: string; readonly detail?: Readonly<Record<string, unknown>> }
  }
  interface FastifyContextConfig {
    /** The first grant that the route needs. */
    verb?: Verb
  }
}

/** Applies to all routes that are registered after this call. */
export function auditActions(
  app: FastifyInstance,
  { audit }: { readonly audit: Pick<AuditLog, 'record'> },
  list: readonly Endpoint[] = endpoints,
): void {
  const declared = new Map(list.map((one) => [`${one.method} ${one.path}`, one.needs]))
  app.decorateRequest('audited', undefined)
  app.addHook('onRoute', (route) => {
    const needs = declared.get(`${String(route.method)} ${route.url}`)
    if (needs === undefined || needs === 'nothing') return
    const [first] = needs
    if (first !== undefined) route.config = { ...route.config, verb: first.verb }
    const action = needs.find(({ verb }) => verb === 'manage' || verb === 'admin')
    if (action === undefined || route.method === 'GET') return
    const record: onSendHookHandler = (request, reply, payload, done) => {
      const status = reply.statusCode
      // Refusals are sampled.
      if (status === 401 || status === 403) {
        done(null, payload)
        return
      }
      const entry = entryOf(request, action.verb)
      const detail = { ...entry.detail, ...request.audited?.detail, status }
      const outcome = status < 400 ? 'done' : 'failed'
      void audit.record({ ...entry, outcome, detail }).then(() => done(null, payload))
    }
    route.onSend = [record, ...(route.onSend === undefined ? [] : [route.onSend].flat())]
  })
}

/** The entry of a request that was refused with 401 or 403. */
export function refusalOf(request: FastifyRequest, error: RouseError): AuditEntry {
  const entry = entryOf(request, request.routeOptions.config.verb ?? 'none')
  const shown = apiKeyId(/^bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '')
  const shownKey = shown === undefined || shown === entry.keyId ? {} : { shownKey: shown }
  const detail = { ...entry.detail, code: error.code, ...shownKey }
  return { ...entry, outcome: 'refused', detail }
}

function entryOf(request: FastifyRequest, verb: string): Omit<AuditEntry, 'outcome'> {
  const { principal, ip, id, method, routeOptions } = request
  return {
    principal: principal.name,
    keyId: principal.keyId,
    address: ip,
    verb,
    target: request.audited?.target ?? targetOf(request),
    requestId: id.slice(0, textMax),
    detail: { route: `${method} ${routeOptions.url ?? ''}` },
  }
}

const textMax = 255
const targetFields = ['queue', 'name', 'keyId', 'id', 'group', 'transactionId']

/** What the request names, in its path, body or query. */
function targetOf({ params, body, query }: FastifyRequest): string {
  for (const field of targetFields) {
    for (const place of [params, body, query]) {
      const value = (place as Readonly<Record<string, unknown>> | null | undefined)?.[field]
      if (typeof value === 'string' && value !== '') return value.slice(0, textMax)
    }
  }
  return '*'
}
