// Serves the documentation at /docs: the static site that `npm run docs` builds.
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RouseError } from '@rouse/protocol'
import type { FastifyInstance, FastifyReply } from 'fastify'

const folder = fileURLToPath(new URL('../../../site', import.meta.url))
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
}
/** The site loads only its own files. */
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'"

const first = '/docs/index.html'

export function siteRoutes(app: FastifyInstance): void {
  // Read by the first request: most workers never need it. A path is only looked up, never opened.
  let files: ReadonlyMap<string, Buffer> | undefined

  function send(reply: FastifyReply, path: string): FastifyReply {
    files ??= readSite()
    const file = files.get(path)
    if (file === undefined) {
      const problem =
        files.size === 0
          ? 'the documentation was not built: npm run docs'
          : `there is no page ${path}`
      throw new RouseError('not_found', problem)
    }
    reply.header('content-security-policy', policy).header('cache-control', 'max-age=300')
    return reply.type(types[extname(path)] ?? 'application/octet-stream').send(file)
  }

  app.get('/docs', async (_request, reply) => reply.redirect(first, 302))
  app.get('/docs/:page', async (request, reply) => {
    const { page } = request.params as { page: string }
    return page === '' ? reply.redirect(first, 302) : send(reply, page)
  })
  app.get('/docs/:folder/:page', async (request, reply) => {
    const { folder: part, page } = request.params as { folder: string; page: string }
    return send(reply, `${part}/${page}`)
  })
}

function readSite(): ReadonlyMap<string, Buffer> {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    return new Map(
      entries
        .filter((entry) => entry.isFile())
        .map((entry) => {
          const path = join(entry.parentPath, entry.name)
          return [relative(folder, path).replaceAll('\\', '/'), readFileSync(path)]
        }),
    )
  } catch {
    return new Map()
  }
}
