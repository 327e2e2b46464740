// Credentials in the URL: sent as a header, never printed.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { Api } from '../src/api.ts'
import { withoutCredentials } from '../src/url-credentials.ts'
import { rouse } from './support/rouse.ts'

const timeout = 60_000

/** A proxy with a password, in place of a node. */
async function proxy(t: Test, answer: (response: ServerResponse) => void) {
  const seen: IncomingMessage[] = []
  const server = createServer((request, response) => {
    seen.push(request)
    answer(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return { port: (server.address() as AddressInfo).port, seen }
}

test('the credentials of a URL are sent as Authorization: Basic', { timeout }, async (t) => {
  const { port, seen } = await proxy(t, (response) => {
    response.setHeader('content-type', 'application/json').end('{"groups":[],"cursor":null}')
  })
  const url = `http://ann:p%40ss%3Aword@127.0.0.1:${port}/`
  const { code, out, err } = await rouse(['groups'], { env: { ROUSE_URL: url } })
  t.same({ code, out, err }, { code: 0, out: '[]\n', err: '' })
  const [request] = seen
  t.equal(request?.url, '/api/v1/groups')
  const basic = Buffer.from('ann:p@ss:word').toString('base64')
  t.equal(request?.headers.authorization, `Basic ${basic}`)
  t.match(request?.headers['user-agent'], /^rouse-cli\/\d/)
})

test('the password is in no message', { timeout }, async (t) => {
  const { port } = await proxy(t, (response) => {
    response.writeHead(401, { 'content-type': 'text/html' }).end('<h1>no</h1>')
  })
  for (const [url, code] of [
    [`http://ann:swordfish@127.0.0.1:${port}`, 2],
    ['http://ann:swordfish@127.0.0.1:1', 2],
    ['http://ann:swordfish@no-such-host.invalid', 2],
    ['http://ann:sword/fish@host', 1],
    ['http://ann:swordfish%@host', 1],
    ['htp://ann:swordfish@host', 1],
    ['ann:swordfish@host:4600', 1],
  ] as const) {
    for (const args of [
      ['queues', '--url', url],
      ['doctor', '--url', url],
      ['queues', 'rm', 'q', '--url', url],
    ]) {
      const run = await rouse(args)
      t.notMatch(run.out + run.err, /swordfish|fish@/, args.join(' '))
      t.equal(run.code, args[0] === 'doctor' && code === 2 ? 5 : code, args.join(' '))
    }
  }
})

test('a URL with credentials and a token are not mixed', async (t) => {
  t.throws(() => new Api('http://ann:x@host', 'rouse_key'), { message: /only one of them/ })
  t.equal(new Api('http://ann:x@host:1/base/').url, 'http://host:1/base')
  t.equal(withoutCredentials('http://host/a@b'), 'http://b', 'rather too much than too little')
})
