// Gives every route the schemas of its endpoint. One place decides for all routes that a body or a query
// with an unknown field is refused.
import { type Endpoint, endpoints, type RequestSchema } from '@rouse/protocol'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'

/** Applies to all routes that are registered after this call. */
export function applyRequestSchemas(app: FastifyInstance): void {
  const known = new Map(endpoints.map((one) => [`${one.method} ${one.path}`, one]))
  app.addHook('onRoute', (route) => {
    const method = String(route.method)
    const endpoint = known.get(`${method === 'HEAD' ? 'GET' : method} ${route.url}`)
    if (endpoint === undefined) {
      throw new Error(`${method} ${route.url} is not in the list of endpoints`)
    }
    const querystring = querySchema(endpoint)
    if (endpoint.method === 'GET') {
      route.schema = { querystring }
      return
    }
    route.schema = { querystring, body: bodySchema(endpoint.body ?? emptyBody) }
    if (endpoint.body === undefined) route.preValidation = [allowNoBody, ...hooksOf(route)]
  })
}

const emptyBody: RequestSchema = { type: 'object', properties: {} }

function allowNoBody(request: FastifyRequest, _reply: unknown, done: () => void): void {
  request.body ??= {}
  done()
}

function hooksOf({ preValidation }: RouteOptions) {
  return preValidation === undefined ? [] : [preValidation].flat()
}

/** Only the names: in a query string all values are text. */
function querySchema({ query }: Endpoint): object {
  const names = Object.keys(query?.properties ?? {})
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, {}])),
    additionalProperties: false,
  }
}

/**
 * The schema of a body as the validator gets it: objects take no unknown fields, and list lengths are not
 * limited, because these limits are configurable and the routes check them.
 */
export function bodySchema(schema: RequestSchema): object {
  return JSON.parse(JSON.stringify(schema, (_key, value: unknown) => closed(value))) as object
}

function closed(part: unknown): unknown {
  if (typeof part !== 'object' || part === null || Array.isArray(part)) return part
  const { maxItems: _, ...schema } = part as Readonly<Record<string, unknown>>
  const isClosed = schema.type === 'object' && 'properties' in schema
  return isClosed ? { additionalProperties: false, ...schema } : schema
}
