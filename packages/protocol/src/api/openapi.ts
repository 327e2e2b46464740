// The OpenAPI description, made from the endpoints and the schemas that validate requests.
import { ProblemSchema } from '../schemas/problem.ts'
import { answers, otherAnswers, textAnswers } from './answers.ts'
import type { Endpoint, Needs, Target } from './endpoint.ts'
import { endpoints } from './endpoints.ts'
import { exampleParams, examples } from './examples.ts'
import { closed } from './request-schema.ts'

type Json = Readonly<Record<string, unknown>>

export function openApi(version: string): Json {
  const paths: Record<string, Record<string, Json>> = {}
  for (const endpoint of endpoints) {
    const path = endpoint.path.replaceAll(/:(\w+)/g, '{$1}')
    const methods = paths[path] ?? {}
    methods[endpoint.method.toLowerCase()] = describe(endpoint)
    paths[path] = methods
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Rouse', version, summary: 'A clustered message queue on PostgreSQL' },
    paths,
    components: { schemas: { Problem: ProblemSchema }, securitySchemes: { apiKey } },
  }
}

function describe(endpoint: Endpoint): Json {
  const { method, path, summary } = endpoint
  const body = endpoint.shownBody ?? endpoint.body
  const key = `${method} ${path}`
  const { status = 200, ...example } = examples[key] ?? {}
  const parameters = [...pathParameters(path), ...queryParameters(endpoint)]
  return {
    operationId: operationId(endpoint),
    summary,
    ...accessOf(endpoint.needs),
    tags: [tagOf(path)],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            content: { 'application/json': { schema: closed(body), example: example.body } },
          },
        }),
    responses: {
      [status]: { description: summary, ...contentOf(key) },
      ...otherResponses(key, summary),
      ...(path.includes('/pop') ? { 204: { description: 'There are no messages' } } : {}),
      default: problem,
    },
  }
}

const apiKey = {
  type: 'http',
  scheme: 'bearer',
  description:
    'An API key, rouse_…; "rouse keys create" makes one. Or an access token of the OIDC issuer of the cluster',
}

/** The scheme and the grants of a route. */
function accessOf(needs: Needs): Json {
  if (needs === 'nothing') return { security: [], description: 'Needs no credential.' }
  const grants = needs.map(
    ({ verb, target, orRedacted }) =>
      `\`${verb}\`${targetTexts[target]}${
        orRedacted === undefined
          ? ''
          : `; \`${orRedacted}\` is enough for a response without content`
      }`,
  )
  return {
    security: [{ apiKey: [] }],
    description: `Needs the grant ${grants.join(', and ')}.`,
    'x-rouse-grants': needs,
  }
}

const targetTexts: Readonly<Record<Target, string>> = {
  every: ' on `*`',
  path: ' on the queue',
  query: ' on the queue; without `queue`, on `*`',
  body: ' on the queue of the body; without one, on `*`',
  items: ' on the queue of every item',
  options: ' on the queue that `deadLetterTo` names, if it is given',
  operations: ' for the operations of this kind',
  any: ' on any queue',
  found: ' on the queue that is found',
}

const problem = {
  description: 'An error',
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
}

function contentOf(key: string): Json {
  const type = textAnswers[key]
  if (type !== undefined) return { content: { [type]: { schema: { type: 'string' } } } }
  const schema = answers[key]
  return schema === undefined ? {} : { content: { 'application/json': { schema } } }
}

function otherResponses(key: string, description: string): Json {
  const others = Object.entries(otherAnswers[key] ?? {})
  return Object.fromEntries(
    others.map(([status, schema]) => [
      status,
      { description, content: { 'application/json': { schema } } },
    ]),
  )
}

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
    example: exampleParams[name],
  }))
}

function queryParameters({ method, path, query }: Endpoint): Json[] {
  if (query === undefined) return []
  const { properties, required = [] } = query as { properties: object; required?: string[] }
  const example = examples[`${method} ${path}`]?.query ?? {}
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema: schema as unknown,
    ...(example[name] === undefined ? {} : { example: example[name] }),
  }))
}

/** `getApiV1QueuesByQueue`: the method and the words of the path. */
function operationId({ method, path }: Endpoint): string {
  const words = path.split(/[/-]/).filter((word) => word !== '')
  const names = words.map((word) =>
    word.startsWith(':') ? `By${capital(word.slice(1))}` : capital(word.replaceAll('.', '')),
  )
  const end = path.length > 1 && path.endsWith('/') ? 'Index' : ''
  return `${method.toLowerCase()}${names.join('')}${end}`
}

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1)
}

function tagOf(path: string): string {
  return /^\/api\/v1\/([a-z-]+)/.exec(path)?.[1] ?? 'node'
}
