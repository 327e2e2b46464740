// The description of the API: for programs as OpenAPI, for people as one page without external assets.
import { openApi } from '@rouse/protocol'
import type { FastifyInstance } from 'fastify'
import { version } from '../version.ts'

export function apiDocRoutes(app: FastifyInstance): void {
  // Made by the first request: most workers never need it.
  let json: string | undefined
  let page: string | undefined

  app.get('/openapi.json', async (_request, reply) => {
    json ??= JSON.stringify(openApi(version))
    return reply.type('application/json; charset=utf-8').send(json)
  })

  app.get('/docs/api', async (_request, reply) => {
    page ??= pageOf(openApi(version) as unknown as Description)
    reply.header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'")
    return reply.type('text/html; charset=utf-8').send(page)
  })
}

interface Description {
  readonly info: { readonly title: string; readonly version: string; readonly summary: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly description: string; content?: Content }>>
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema: { readonly type?: string; readonly description?: string }
  readonly example?: unknown
}

type Content = Readonly<Record<string, { readonly schema: unknown; readonly example?: unknown }>>

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
h2{margin-top:3rem;border-bottom:1px solid #ccc}code,pre{font:14px/1.4 ui-monospace,monospace}
pre{background:#f4f4f4;padding:.75rem;overflow:auto}summary{cursor:pointer;padding:.25rem 0}
b{display:inline-block;min-width:4.5rem}table{border-collapse:collapse}td{padding:.1rem 1rem .1rem 0;vertical-align:top}
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}pre{background:#252525}}`

function pageOf({ info, paths }: Description): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const tags = [...new Set(operations.map(({ operation }) => operation.tags[0] ?? ''))]
  const sections = tags.map((tag) => {
    const own = operations.filter(({ operation }) => operation.tags[0] === tag)
    return `<h2>${escape(tag)}</h2>${own.map(sectionOf).join('')}`
  })
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escape(info.title)} API</title>
<meta name="viewport" content="width=device-width"><style>${style}</style>
<h1>${escape(info.title)} ${escape(info.version)}</h1><p>${escape(info.summary)}.
The same as OpenAPI: <a href="/openapi.json">/openapi.json</a>.</p>${sections.join('')}</html>`
}

function sectionOf(one: {
  readonly path: string
  readonly method: string
  readonly operation: Operation
}): string {
  const { path, method, operation } = one
  const { parameters = [], requestBody, responses, summary, description } = operation
  const rows = parameters.map(
    ({ name, in: place, schema }) =>
      `<tr><td><code>${escape(name)}</code><td>${place}<td>${escape(schema.type ?? '')}<td>${escape(schema.description ?? '')}`,
  )
  const body = requestBody?.content['application/json']
  const answers = Object.entries(responses).flatMap(([status, { content }]) => {
    const schema = content?.['application/json']?.schema
    return schema === undefined ? [] : [`<p>Response ${status}</p>${pre(schema)}`]
  })
  return `<details id="${operation.operationId}"><summary><b>${method.toUpperCase()}</b> <code>${escape(path)}</code> ${escape(summary)}</summary>
<p>${escape(description.replaceAll('`', ''))}</p><pre>${escape(curlOf(path, method, operation))}</pre>${rows.length === 0 ? '' : `<table>${rows.join('')}</table>`}
${body === undefined ? '' : `<p>Body</p>${pre(body.schema)}`}${answers.join('')}</details>`
}

/** The example as a command. */
function curlOf(path: string, method: string, { parameters = [], requestBody }: Operation): string {
  const given = (place: string) =>
    parameters.filter((one) => one.in === place && one.example !== undefined)
  const filled = given('path').reduce(
    (text, { name, example }) => text.replace(`{${name}}`, encodeURIComponent(String(example))),
    path,
  )
  const query = new URLSearchParams(
    given('query').map(({ name, example }): [string, string] => [name, String(example)]),
  ).toString()
  const address = `http://localhost:4600${filled}${query === '' ? '' : `?${query}`}`
  const example = requestBody?.content['application/json']?.example
  const data =
    example === undefined
      ? ''
      : ` \\\n  -H 'content-type: application/json' -d '${JSON.stringify(example)}'`
  return `curl${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} '${address}'${data}`
}

function pre(value: unknown): string {
  return `<pre>${escape(JSON.stringify(value, null, 2))}</pre>`
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
