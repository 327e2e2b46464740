// Serves the dashboard, the static files that apps/dashboard builds. They hold no data, so they need no credential.
//
// File names have no hash: behind a balancer the page may come from one node and its script from another that runs
// another release, and each pair of them must work. Browsers revalidate by ETag instead.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { RouseError } from '@rouse/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

const folder = fileURLToPath(new URL('../../../../dashboard/dist', import.meta.url))
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}
/** The page loads only its own files, runs no inline script, and cannot be framed. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

interface File {
  readonly plain: Buffer
  readonly gzipped: Buffer
  readonly etag: string
}

export function dashboardRoutes(app: FastifyInstance): void {
  // Read by the first request: most workers never need it. A path is only looked up, never opened.
  let files: ReadonlyMap<string, File> | undefined

  function send(request: FastifyRequest, reply: FastifyReply, name: string): FastifyReply {
    if (files === undefined || files.size === 0) files = readFiles()
    const file = files.get(name)
    if (file === undefined) {
      const problem =
        files.size === 0
          ? 'the dashboard was not built: npm run build'
          : `the dashboard has no file ${name}`
      throw new RouseError('not_found', problem)
    }
    reply
      .header('content-security-policy', policy)
      .header('x-content-type-options', 'nosniff')
      .header('referrer-policy', 'no-referrer')
      .header('cache-control', 'no-cache')
      .header('vary', 'accept-encoding')
      .header('etag', file.etag)
    if (request.headers['if-none-match'] === file.etag) return reply.code(304).send()
    reply.type(types[extname(name)] ?? 'application/octet-stream')
    if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(file.plain)
    return reply.header('content-encoding', 'gzip').send(file.gzipped)
  }

  // Relative, so that it is right behind a proxy that removes a prefix of the path.
  app.get('/dashboard', async (_request, reply) => reply.redirect('dashboard/', 302))
  app.get('/dashboard/', async (request, reply) => send(request, reply, 'index.html'))
  app.get('/dashboard/:file', async (request, reply) => {
    return send(request, reply, (request.params as { readonly file: string }).file)
  })
}

function readFiles(): ReadonlyMap<string, File> {
  try {
    return new Map(
      readdirSync(folder).map((name) => {
        const plain = readFileSync(join(folder, name))
        const hash = createHash('sha256').update(plain).digest('base64url').slice(0, 22)
        return [name, { plain, gzipped: gzipSync(plain, { level: 9 }), etag: `W/"${hash}"` }]
      }),
    )
  } catch {
    return new Map()
  }
}
