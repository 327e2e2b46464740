import { createServer, type Server } from 'node:http'
import { connect } from 'node:net'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { type Backend, startBalancer } from '../../src/dev/balancer.ts'

const host = '127.0.0.1'

/** Starts a server that responds with its own name. */
async function startServer(t: Test, name: string): Promise<Backend & { readonly server: Server }> {
  const server = createServer((_request, response) => response.end(name))
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { host, port: (server.address() as { port: number }).port, server }
}

async function balancerOf(
  t: Test,
  backends: readonly Backend[],
  isReady: (backend: Backend) => boolean = () => true,
): Promise<string> {
  const balancer = await startBalancer({ host, port: 0, backends, isReady })
  t.teardown(() => balancer.stop())
  return `http://${host}:${balancer.port}`
}

const ask = async (url: string): Promise<string> =>
  (await fetch(url, { headers: { connection: 'close' } })).text()

test('a connection goes to the node with the fewest connections', async (t) => {
  const backends = [await startServer(t, 'a'), await startServer(t, 'b')]
  const url = await balancerOf(t, backends)
  const held = connect(Number(new URL(url).port), host)
  t.teardown(() => held.destroy())
  held.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  const bytes = await new Promise<Buffer>((resolve) => held.once('data', resolve))
  const first = bytes.toString().slice(-1)
  t.equal(await ask(url), first === 'a' ? 'b' : 'a')
})

test('a node that is not ready is skipped while another is ready', async (t) => {
  const [a, b] = [await startServer(t, 'a'), await startServer(t, 'b')]
  const url = await balancerOf(t, [a, b], ({ port }) => port === b.port)
  for (let i = 0; i < 5; i += 1) t.equal(await ask(url), 'b')
})

test('a node that refuses connections fails no request', async (t) => {
  const [a, b] = [await startServer(t, 'a'), await startServer(t, 'b')]
  const url = await balancerOf(t, [a, b])
  await new Promise((resolve) => a.server.close(resolve))
  for (let i = 0; i < 5; i += 1) t.equal(await ask(url), 'b')
})

test('without any node the connection is closed, and a node that returns is used again', async (t) => {
  const a = await startServer(t, 'a')
  const url = await balancerOf(t, [a], () => false)
  await new Promise((resolve) => a.server.close(resolve))
  await t.rejects(ask(url))
  await new Promise<void>((resolve) => a.server.listen(a.port, host, resolve))
  t.equal(await ask(url), 'a')
})

test('a client that disconnects also closes its connection to the node', async (t) => {
  const a = await startServer(t, 'a')
  const url = await balancerOf(t, [a])
  let closed = false
  a.server.removeAllListeners('request')
  a.server.on('request', (request) => request.once('close', () => (closed = true)))
  const client = connect(Number(new URL(url).port), host)
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await eventually(
    async () =>
      new Promise<boolean>((resolve) => a.server.getConnections((_e, n) => resolve(n === 1))),
  )
  client.destroy()
  await eventually(async () => closed)
  t.ok(closed)
})

test('a closed balancer rejects new connections and lets open ones finish', async (t) => {
  const a = await startServer(t, 'a')
  const balancer = await startBalancer({ host, port: 0, backends: [a], isReady: () => true })
  t.teardown(() => balancer.stop())
  let answer: (() => void) | undefined
  a.server.removeAllListeners('request')
  a.server.on('request', (_request, response) => (answer = () => response.end('late')))
  const url = `http://${host}:${balancer.port}`
  const asked = ask(url)
  await eventually(() => answer !== undefined)
  balancer.close()
  await t.rejects(ask(url))
  answer?.()
  t.equal(await asked, 'late')
  await balancer.stop()
})

test('trying many unreachable nodes leaks no event listeners', async (t) => {
  const warnings: Error[] = []
  const note = (warning: Error) => void warnings.push(warning)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  const gone = await startServer(t, 'gone')
  await new Promise((resolve) => gone.server.close(resolve))
  const a = await startServer(t, 'a')
  const nowhere = Array.from({ length: 15 }, () => ({ host, port: gone.port }))
  const url = await balancerOf(t, [...nowhere, a])
  t.equal(await ask(url), 'a')
  t.same(warnings, [])
})
