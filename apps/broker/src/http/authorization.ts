// Checks the credential and the grants of every request, as its endpoint declares, before the code of the route runs.
// What the URL shows is checked before the body is read; what the body names, before the body is validated.
import {
  type Endpoint,
  endpoints,
  type Need,
  requestDefaults,
  type Target,
  type Verb,
} from '@rouse/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Access } from '../auth/access.ts'
import { forbidden } from '../auth/forbidden.ts'
import type { Grants } from '../auth/grants.ts'
import type { OpenPolls } from '../auth/open-polls.ts'
import type { Principal } from '../auth/principal.ts'
import type { RateLimits } from '../auth/rate-limits.ts'

type Check = (request: FastifyRequest) => void

export interface Guards {
  readonly access: Pick<Access, 'authenticate'>
  readonly openPolls: OpenPolls
  readonly rateLimits: RateLimits
}

/** Applies to all routes that are registered after this call. */
export function enforceGrants(
  app: FastifyInstance,
  { access, openPolls, rateLimits }: Guards,
  list: readonly Endpoint[] = endpoints,
): void {
  const declared = new Map(list.map((one) => [`${one.method} ${one.path}`, one.needs]))
  app.addHook('onRoute', (route) => {
    const method = String(route.method)
    const needs = declared.get(`${method === 'HEAD' ? 'GET' : method} ${route.url}`)
    if (needs === undefined) throw new Error(`${method} ${route.url} declares no grant`)
    if (needs === 'nothing') return
    const hasBody = method !== 'GET' && method !== 'HEAD'
    const [late, early] = split(needs, (need) => isInBody(need, hasBody))
    const checks = early.map(checkOf)
    const isPoll = needs.some(isPollNeed)
    // A pop leases messages, whatever its method.
    const isChange = hasBody || isPoll
    const enter = (principal: Principal, request: FastifyRequest, reply: FastifyReply) => {
      request.principal = principal
      if (principal.limits !== undefined)
        admit(rateLimits, principal, request, isPoll ? reply : undefined)
      for (const check of checks) check(request)
      if (isPoll) openPolls.add(request, reply)
    }
    route.onRequest = [
      (request, reply, done) => {
        try {
          const principal = access.authenticate(request.headers, request.raw.socket, isChange)
          if (principal instanceof Promise) {
            principal.then((found) => enter(found, request, reply)).then(() => done(), done)
            return
          }
          enter(principal, request, reply)
          done()
        } catch (error) {
          done(error as Error)
        }
      },
      ...hooksOf(route.onRequest),
    ]
    if (late.length === 0) return
    const bodyChecks = late.map(checkOf)
    route.preValidation = [
      (request, _reply, done) => {
        try {
          for (const check of bodyChecks) check(request)
          done()
        } catch (error) {
          done(error as Error)
        }
      },
      ...hooksOf(route.preValidation),
    ]
  })
}

/** Counts the request before its grants are checked: refused requests count, too. */
function admit(
  rateLimits: RateLimits,
  { keyId, limits }: Principal,
  request: FastifyRequest,
  poll: FastifyReply | undefined,
): void {
  if (keyId === undefined || limits === undefined) return
  rateLimits.admit(keyId, limits, Number(request.headers['content-length'] ?? 0))
  if (poll !== undefined) limitPoll(rateLimits, keyId, limits, poll)
}

function limitPoll(
  rateLimits: RateLimits,
  keyId: string,
  limits: NonNullable<Principal['limits']>,
  poll: FastifyReply,
): void {
  rateLimits.openPop(keyId, limits)
  poll.raw.once('close', () => rateLimits.popClosed(keyId))
}

/**
 * For a request that waits, on a route where most do not: it counts as a waiting pop of its key, and ends
 * with the key, or the token.
 */
export function admitPoll(
  request: FastifyRequest,
  reply: FastifyReply,
  { openPolls, rateLimits }: Pick<Guards, 'openPolls' | 'rateLimits'>,
): void {
  const { keyId, limits } = request.principal
  if (keyId !== undefined && limits !== undefined) limitPoll(rateLimits, keyId, limits, reply)
  openPolls.add(request, reply)
}

function split<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))]
}

function hooksOf<Hook>(hooks: Hook | Hook[] | undefined): Hook[] {
  return hooks === undefined ? [] : ([hooks].flat() as Hook[])
}

/** A pop, which may wait. Its consumer group is in the body, if it has one. */
function isPollNeed({ verb, target }: Need): boolean {
  return verb === 'pop' && (target === 'path' || target === 'every')
}

const bodyTargets: ReadonlySet<Target> = new Set(['body', 'items', 'options', 'operations'])

function isInBody(need: Need, hasBody: boolean): boolean {
  const { target } = need
  if (bodyTargets.has(target)) return true
  return hasBody && isPollNeed(need)
}

function checkOf({ verb, target, orRedacted }: Need): Check {
  const read = readers[target]
  return (request) => {
    const { grants } = request.principal
    if (grants.everywhere.has(verb)) return
    try {
      read(request, verb, grants)
    } catch (error) {
      if (orRedacted === undefined) throw error
      if (grants.everywhere.has(orRedacted)) return
      // The error names the weaker grant: it is enough for a response.
      read(request, orRedacted, grants)
    }
  }
}

type Fields = Readonly<Record<string, unknown>>

/** What is read here is not validated yet. Throws unless the grants cover every queue that the request names. */
const readers: Readonly<
  Record<Target, (request: FastifyRequest, verb: Verb, grants: Grants) => void>
> = {
  every: (_request, verb) => {
    throw verb === 'admin' ? forbidden(verb) : forbidden(verb, '*')
  },
  any: (_request, verb, grants) => requireAny(verb, grants),
  found: (_request, verb, grants) => requireAny(verb, grants),
  path: (request, verb, grants) => {
    const { queue } = request.params as Fields
    const group = verb === 'pop' ? groupOf(request) : undefined
    requireQueue(verb, queue, grants, group)
  },
  query: ({ query }, verb, grants) => requireQueue(verb, fieldOf(query, 'queue'), grants),
  body: ({ body }, verb, grants) => requireQueue(verb, fieldOf(body, 'queue'), grants),
  items: ({ body }, verb, grants) => requireItems(verb, fieldOf(body, 'items'), grants),
  options: ({ body }, verb, grants) => {
    const target = fieldOf(fieldOf(body, 'options'), 'deadLetterTo') ?? undefined
    if (target !== undefined) requireQueue(verb, target, grants)
  },
  operations: ({ body }, verb, grants) => {
    const operations = fieldOf(body, 'operations')
    const ofType = (type: string) =>
      Array.isArray(operations) ? operations.filter((one) => fieldOf(one, 'type') === type) : []
    if (verb === 'push') {
      for (const one of ofType('push')) requireItems(verb, fieldOf(one, 'items'), grants)
    } else if (ofType('ack').length > 0 || fieldOf(body, 'requiredLeases') !== undefined) {
      requireAny(verb, grants)
    }
  },
}

function requireAny(verb: Verb, grants: Grants): void {
  if (!grants.coversAny(verb)) throw forbidden(verb)
}

/** A request without a queue is about every queue. */
function requireQueue(verb: Verb, queue: unknown, grants: Grants, group?: string): void {
  if (typeof queue !== 'string') throw forbidden(verb, '*')
  if (!grants.covers(verb, queue, group)) throw forbidden(verb, queue)
}

/** Validation refuses items without a queue, and no item names a queue in another way. */
function requireItems(verb: Verb, items: unknown, grants: Grants): void {
  requireAny(verb, grants)
  if (!Array.isArray(items)) return
  let last: unknown
  for (const item of items) {
    const queue = fieldOf(item, 'queue')
    if (queue === last || typeof queue !== 'string') continue
    requireQueue(verb, queue, grants)
    last = queue
  }
}

/** The consumer group of a pop. Undefined, and so only covered by grants for all groups, if it is not a name. */
function groupOf({ method, query, body }: FastifyRequest): string | undefined {
  const group = fieldOf(method === 'POST' ? body : query, 'consumerGroup') ?? 'default'
  if (typeof group !== 'string') return undefined
  return group === 'default' ? requestDefaults.consumerGroup : group
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Fields)[name] : undefined
}
