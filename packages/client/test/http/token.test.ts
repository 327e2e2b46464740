import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { Rouse, type RouseOptions } from '../../src/index.ts'

/** A server that answers every push after the given number of failures. Returns the credentials it got. */
async function serverThatFails(t: Test, times: number) {
  const seen: (string | undefined)[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization)
    request.resume()
    const isFailing = seen.length <= times
    response.writeHead(isFailing ? 503 : 201, { 'content-type': 'application/json' })
    const pushed = [{ status: 'queued', message_id: 'm', transaction_id: 't', partition_id: '1' }]
    response.end(JSON.stringify(isFailing ? { code: 'overloaded', retryable: true } : pushed))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { seen, url }
}

function clientOf(t: Test, options: RouseOptions): Rouse {
  const rouse = new Rouse(options)
  t.teardown(() => rouse.close())
  return rouse
}

test('a token is sent with every request, without the line break of its file', async (t) => {
  const { seen, url } = await serverThatFails(t, 0)
  const rouse = clientOf(t, { urls: url, token: 'rouse_a\n' })
  await rouse.queue('q').push(1)
  await rouse.queue('q').push(2)
  t.same(seen, ['Bearer rouse_a', 'Bearer rouse_a'])
})

test('a function is asked before every try', async (t) => {
  const { seen, url } = await serverThatFails(t, 1)
  let asked = 0
  const rouse = clientOf(t, {
    urls: url,
    token: async () => {
      asked += 1
      return `key-${asked}`
    },
  })
  await rouse.queue('q').push(1)
  t.same(seen, ['Bearer key-1', 'Bearer key-2'])
})

test('if no token can be obtained, the call fails with that reason and sends nothing', async (t) => {
  const { seen, url } = await serverThatFails(t, 0)
  const token = () => Promise.reject(new Error('the vault is sealed'))
  const rouse = clientOf(t, { urls: url, token })
  await t.rejects(rouse.queue('q').push(1), { message: /the vault is sealed/ })
  t.same(seen, [])
})

test('the credentials of a URL are sent as Authorization: Basic, and shown in no error', async (t) => {
  const { seen, url } = await serverThatFails(t, 0)
  const withPassword = url.replace('//', '//ann:p%40ss%3A%C3%A4@')
  await clientOf(t, { urls: withPassword }).queue('q').push(1)
  t.same(seen, [`Basic ${Buffer.from('ann:p@ss:ä').toString('base64')}`])

  const nowhere = { urls: 'http://ann:swordfish@127.0.0.1:1', retryFor: '1ms' } as const
  const error = await clientOf(t, nowhere)
    .queue('q')
    .push(1)
    .catch((one: Error) => one)
  t.ok(error instanceof Error)
  t.notMatch(`${(error as Error).stack}`, /swordfish/)
  for (const wrong of [
    'ann:swordfish@host',
    'http://ann:sword/fish@host',
    'http://a:swordfish%@b',
  ]) {
    const made = () => new Rouse({ urls: wrong })
    t.throws(made, { code: 'invalid_request', message: /^(?!.*fish)/ }, wrong)
  }
  t.throws(() => new Rouse({ urls: withPassword, token: 'rouse_a' }), { message: /not both/ })
})
