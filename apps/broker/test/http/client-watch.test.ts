import type { Lease } from '@rouse/storage'
import fastify from 'fastify'
import { test } from 'tap'
import { ClientWatch } from '../../src/http/client-watch.ts'

test('leases are released if the request got another response while they were fetched', async (t) => {
  const released: string[] = []
  const app = fastify()
  const delivering = new Promise<boolean>((resolve) => {
    app.get('/', (request, reply) => {
      const watch = new ClientWatch(request, reply, { release: (ids) => released.push(...ids) })
      void reply.code(401).send('the key has ended')
      resolve(watch.delivering([{ leaseId: 'a' } as Lease]))
    })
  })
  t.teardown(() => app.close())
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  t.equal((await fetch(url)).status, 401)
  t.equal(await delivering, false)
  t.same(released, ['a'])
})
