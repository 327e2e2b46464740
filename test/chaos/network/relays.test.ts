import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket as TcpSocket } from 'node:net'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { startTcpRelay, type TcpRelay } from './tcp-relay.ts'
import { startUdpRelay, type UdpFault, type UdpRelay } from './udp-relay.ts'

const patience = { timeoutMs: 20_000 }
const always = () => 0

test('a TCP relay forwards both directions', async (t) => {
  const { client, received } = await wire(t)
  client.socket.write('one')
  await eventually(() => received() === 'one' && client.text() === 'ONE', patience)
})

test('a relay that drops resets nothing, and delivers the data later', async (t) => {
  const { relay, client, received } = await wire(t)
  relay.set({ kind: 'drop' })
  client.socket.write('one')
  const other = await dial(t, relay.port)
  other.socket.write('two')
  relay.set({ kind: 'forward' })
  await eventually(() => client.text() === 'ONE' && other.text() === 'TWO', patience)
  t.equal(received().length, 6)
})

test('a relay that rejects resets old and new connections', async (t) => {
  const { relay, client } = await wire(t)
  relay.set({ kind: 'reject' })
  await eventually(() => client.code() === 'ECONNRESET', patience)
  const other = await dial(t, relay.port)
  await eventually(() => other.socket.closed, patience)
})

test('a lost response is one whose request was executed', async (t) => {
  const { relay, client, received } = await wire(t)
  relay.set({ kind: 'lose answers', probability: 1, random: always })
  client.socket.write('one')
  await eventually(() => client.code() === 'ECONNRESET', patience)
  t.equal(received(), 'one')
  t.equal(client.text(), '')
})

test('a cut resets the current connections, and the next one works', async (t) => {
  const { relay, client } = await wire(t)
  client.socket.write('one')
  await eventually(() => client.text() === 'ONE', patience)
  t.equal(relay.cut(), 1)
  await eventually(() => client.code() === 'ECONNRESET', patience)
  const other = await dial(t, relay.port)
  other.socket.write('two')
  await eventually(() => other.text() === 'TWO', patience)
})

test('two nodes see one address of each other, no matter who sends first', async (t) => {
  const { relay, nodes } = await network(t, 3)
  nodes[0]?.send(1, 'hello')
  await eventually(() => nodes[1]?.received.length === 1, patience)
  t.same(nodes[1]?.received, [{ text: 'hello', port: relay.ports[0] }])
  nodes[1]?.send(0, 'hello back')
  await eventually(() => nodes[0]?.received.length === 1, patience)
  t.same(nodes[0]?.received, [{ text: 'hello back', port: relay.ports[1] }])
  t.same(nodes[2]?.received, [])
})

test('one direction is cut, the other is not, and both work after the heal', async (t) => {
  const { relay, nodes } = await network(t, 2)
  harm(relay, 0, 1, { loss: 1 })
  nodes[0]?.send(1, 'lost')
  nodes[1]?.send(0, 'arrives')
  await eventually(() => nodes[0]?.received.length === 1, patience)
  relay.heal()
  nodes[0]?.send(1, 'healed')
  await eventually(() => nodes[1]?.received.length === 1, patience)
  t.equal(nodes[1]?.received[0]?.text, 'healed')
})

test('datagrams are duplicated, and arrive with a flipped bit', async (t) => {
  const { relay, nodes } = await network(t, 2)
  harm(relay, 0, 1, { duplication: 1 })
  nodes[0]?.send(1, 'twice')
  await eventually(() => nodes[1]?.received.length === 2, patience)
  harm(relay, 0, 1, { corruption: 1 })
  nodes[0]?.send(1, 'abc')
  await eventually(() => nodes[1]?.received.length === 3, patience)
  t.equal(nodes[1]?.received[2]?.text, '`bc', 'the lowest bit of the first byte')
})

test('a delayed datagram is overtaken', async (t) => {
  const { relay, nodes } = await network(t, 2)
  relay.harm(0, 1, { delayMsMax: 500, random: scripted([1, 1, 1, 0.9, 1, 1, 1, 0]) })
  nodes[0]?.send(1, 'first')
  nodes[0]?.send(1, 'second')
  await eventually(() => nodes[1]?.received.length === 2, patience)
  t.same(
    nodes[1]?.received.map(({ text }) => text),
    ['second', 'first'],
  )
})

function harm(relay: UdpRelay, from: number, to: number, fault: UdpFault): void {
  relay.harm(from, to, { ...fault, random: always })
}

function scripted(values: readonly number[]): () => number {
  let next = 0
  return () => values[next++] ?? 1
}

interface Caller {
  readonly socket: TcpSocket
  readonly text: () => string
  readonly code: () => string | undefined
}

/** A server that responds in capitals, a relay in front of it, and a client. */
async function wire(t: Test): Promise<{ relay: TcpRelay; client: Caller; received: () => string }> {
  let received = ''
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      received += String(bytes)
      socket.write(String(bytes).toUpperCase())
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const relay = await startTcpRelay({ to: () => port })
  t.teardown(async () => {
    await relay.stop()
    server.close()
  })
  return { relay, client: await dial(t, relay.port), received: () => received }
}

async function dial(t: Test, port: number): Promise<Caller> {
  const socket = connect({ host: '127.0.0.1', port })
  let text = ''
  let code: string | undefined
  socket.on('data', (bytes) => {
    text += String(bytes)
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    code = error.code
  })
  t.teardown(() => socket.destroy())
  await once(socket, 'connect').catch(() => {})
  return { socket, text: () => text, code: () => code }
}

interface Node {
  readonly received: { text: string; port: number }[]
  send(to: number, text: string): void
}

async function network(t: Test, count: number): Promise<{ relay: UdpRelay; nodes: Node[] }> {
  const sockets = await Promise.all(Array.from({ length: count }, bound))
  const relay = await startUdpRelay(sockets.map((socket) => socket.address().port))
  t.teardown(async () => {
    for (const socket of sockets) socket.close()
    await relay.stop()
  })
  const nodes = sockets.map((socket) => {
    const received: Node['received'] = []
    socket.on('message', (bytes, { port }) => received.push({ text: String(bytes), port }))
    return {
      received,
      send: (to: number, text: string) => socket.send(text, relay.ports[to], '127.0.0.1'),
    }
  })
  return { relay, nodes }
}

async function bound(): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return socket
}
