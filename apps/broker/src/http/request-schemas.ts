// Gives every route the schemas of its endpoint. One place decides for all routes that a body or a query
// with an unknown field is refused.
import { closed, type Endpoint, endpoints, type RequestSchema } from '@rouse/protocol'
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

/** The part of Fastify's validator that is used here. */
export interface SchemaCompiler {
  compile(schema: object): SchemaCheck
}

export type SchemaCheck = ((value: unknown) => unknown) & { errors?: unknown }

/**
 * Makes the validator compile a schema when it is first used. There are about 250 schemas, and a worker that
 * compiles all of them takes twice as long to start. Most workers use few of them; the first call of a route
 * takes some milliseconds longer.
 */
export function compileOnFirstUse(compiler: SchemaCompiler): void {
  const compile = compiler.compile.bind(compiler)
  compiler.compile = (schema) => {
    let compiled: SchemaCheck | undefined
    const check: SchemaCheck = (value) => {
      compiled ??= compile(schema)
      const result = compiled(value)
      check.errors = compiled.errors
      return result
    }
    return check
  }
}
