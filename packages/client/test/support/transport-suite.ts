// The contract of a transport. Both built-in transports pass it.
import { eventually, freePort } from '@rouse/testkit'
import { test } from 'tap'
import { type Transport, TransportError } from '../../src/http/transport.ts'
import { scriptedServer } from './scripted-server.ts'

export function transportSuite(name: string, createTransport: () => Transport): void {
  const { signal: never } = new AbortController()

  test(`${name}: sends a body and reads the answer`, async (t) => {
    const server = await scriptedServer(t, ({ body }) => ({
      status: 201,
      body: { echo: body },
      headers: { 'retry-after': '7' },
    }))
    const transport = createTransport()
    t.teardown(() => transport.close())
    const text = 'ä'.repeat(200_000)
    const answer = await transport.send({
      method: 'POST',
      url: new URL('/some/path?a=b%2Fc', server.url),
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text }),
      signal: never,
    })
    t.match(answer, { status: 201, retryAfter: '7' })
    t.ok(JSON.parse(answer.text).echo.text === text, 'every byte is returned')
    t.equal(server.requests[0]?.path, '/some/path?a=b%2Fc')
  })

  test(`${name}: an answer may be empty`, async (t) => {
    const server = await scriptedServer(t, () => ({ status: 204 }))
    const transport = createTransport()
    t.teardown(() => transport.close())
    const request = { url: new URL(server.url), headers: {}, body: undefined, signal: never }
    t.match(await transport.send({ method: 'DELETE', ...request }), { status: 204, text: '' })
  })

  test(`${name}: reports whether the server may have seen the request`, async (t) => {
    const server = await scriptedServer(t, () => 'destroy')
    const transport = createTransport()
    t.teardown(() => transport.close())
    const send = (url: string) =>
      transport.send({ method: 'POST', url: new URL(url), headers: {}, body: '{}', signal: never })
    const refused = await send(`http://127.0.0.1:${await freePort()}`).catch(
      (error: unknown) => error,
    )
    const hungUp = await send(server.url).catch((error: unknown) => error)
    t.ok(refused instanceof TransportError && !refused.maybeSent)
    t.ok(hungUp instanceof TransportError && hungUp.maybeSent)
  })

  test(`${name}: an aborted request rejects`, async (t) => {
    const server = await scriptedServer(t, () => undefined)
    const transport = createTransport()
    t.teardown(() => transport.close())
    const abort = new AbortController()
    const sent = transport.send({
      method: 'POST',
      url: new URL(server.url),
      headers: {},
      body: '{}',
      signal: abort.signal,
    })
    await eventually(() => server.requests.length === 1)
    abort.abort()
    await t.rejects(sent, { name: 'TransportError' })
  })
}
