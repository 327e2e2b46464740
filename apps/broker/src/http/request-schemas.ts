// How requests are validated: every route gets the schemas of its endpoint, and the encoding of a query is checked
// before it is read. One place decides for all routes that a body or a query with an unknown field is refused.
import {
  closed,
  type Endpoint,
  endpoints,
  type FieldError,
  fieldErrors,
  type RequestSchema,
  type RouseError,
} from '@rouse/protocol'
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
function querySchema({ query, ignoresQuery }: Endpoint): object {
  const names = Object.keys(query?.properties ?? {})
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, {}])),
    additionalProperties: ignoresQuery === true,
  }
}

/** Without limits of list lengths: these limits are configurable, and the routes check them. */
export function bodySchema(schema: RequestSchema): object {
  const text = JSON.stringify(closed(schema), (key, value: unknown) =>
    key === 'maxItems' ? undefined : value,
  )
  return JSON.parse(text) as object
}

/**
 * Fastify does not reject a query value that it cannot decode: `%ff` would become a consumer group with the
 * name `%ff`. So the encoding is checked before the query is read. A `querystringParser` cannot do this check,
 * because the router does not catch errors of that parser.
 */
export function encodingFault(url: string): RouseError | undefined {
  // The router also treats `#` as the start of a query.
  const start = url.search(/[?#]/)
  if (start === -1) return undefined
  const query = url.slice(start + 1)
  // Checks the whole query first, because most queries are valid. Only an invalid query is split.
  if (isDecodable(query)) return undefined
  return fieldErrors('invalid_request', query.split('&').flatMap(faultOf))
}

function faultOf(parameter: string): FieldError[] {
  if (isDecodable(parameter)) return []
  const [name = ''] = parameter.split('=', 1)
  const field = isDecodable(name) ? decodeURIComponent(name) : name
  return [{ field, message: 'must be percent-encoded UTF-8' }]
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
