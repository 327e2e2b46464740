import { endpoints } from '@rouse/protocol'
import { fastify } from 'fastify'
import { test } from 'tap'
import {
  applyRequestSchemas,
  compileOnFirstUse,
  type SchemaCheck,
} from '../../src/http/request-schemas.ts'

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

test('a schema is compiled when it is first used, and once', async (t) => {
  const compiled: object[] = []
  const compiler = {
    compile(schema: object): SchemaCheck {
      compiled.push(schema)
      const check: SchemaCheck = (value) => {
        check.errors = value === 1 ? null : [`${String(value)} is not 1`]
        return value === 1
      }
      return check
    },
  }
  compileOnFirstUse(compiler)
  const schema = { const: 1 }
  const check = compiler.compile(schema)
  t.same(compiled, [])
  t.equal(check(2), false)
  t.same(check.errors, ['2 is not 1'])
  t.equal(check(1), true)
  t.equal(check.errors, null)
  t.equal(compiled.length, 1)
  t.equal(compiled[0], schema)
})
