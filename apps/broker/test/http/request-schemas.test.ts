import { endpoints } from '@rouse/protocol'
import { fastify } from 'fastify'
import { test } from 'tap'
import { applyRequestSchemas } from '../../src/http/request-schemas.ts'

test('the schemas of all endpoints can be compiled', async (t) => {
  // Without compileOnFirstUse, Fastify compiles all schemas at its start and fails if one is invalid.
  const app = fastify()
  applyRequestSchemas(app)
  for (const { method, path } of endpoints) {
    app.route({ method, url: path, handler: async () => ({}) })
  }
  await t.resolves(async () => app.ready())
  await app.close()
})
