// Checks the credential and the grants of every request, as its endpoint declares, before the code of the route runs.
// What the URL shows is checked before the body is read; what the body names, before the body is validated.
import {
  type Endpoint,
  endpoints,
  type Needs,
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

type Need = Exclude<Needs, 'nothing'>[number]
type Check = (request: FastifyRequest) => void

export interface Guards {
  readonly access: Access
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
    route.onRequest = [
      (request, reply, done) => {
        try {
          const principal = access.authenticate(request.headers, request.raw.socket)
          request.principal = principal
          if (principal.limits !== undefined)
            admit(rateLimits, principal, request, isPoll ? reply : undefined)
          for (const check of checks) check(request)
          if (isPoll && principal.keyId !== undefined) openPolls.add(request, reply)
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
  if (poll === undefined) return
  rateLimits.openPop(keyId, limits)
  poll.raw.once('close', () => rateLimits.popClosed(keyId))
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

function checkOf({ verb, target }: Need): Check {
  const read = readers[target]
  return (request) => {
    const { grants } = request.principal
    if (grants.coversAll(verb)) return
    read(request, verb, grants)
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
