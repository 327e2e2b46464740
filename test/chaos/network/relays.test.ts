import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket as TcpSocket } from 'node:net'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { startTcpRelay, type TcpRelay } from './tcp-relay.ts'
import { startUdpRelay, type UdpFault, type UdpRelay } from './udp-relay.ts'

const patience = { timeoutMs: 20_000 }
const always = () => 0

test('a TCP relay passes on what both sides say', async (t) => {
  const { client, heard } = await wire(t)
  client.socket.write('one')
  await eventually(() => heard() === 'one' && client.text() === 'ONE', patience)
})

test('a relay that drops tells nobody, and delivers late', async (t) => {
  const { relay, client, heard } = await wire(t)
  relay.set({ kind: 'drop' })
  client.socket.write('one')
  const other = await dial(t, relay.port)
  other.socket.write('two')
  relay.set({ kind: 'forward' })
  await eventually(() => client.text() === 'ONE' && other.text() === 'TWO', patience)
  t.equal(heard().length, 6)
})

test('a relay that rejects resets old and new connections', async (t) => {
  const { relay, client } = await wire(t)
  relay.set({ kind: 'reject' })
  await eventually(() => client.code() === 'ECONNRESET', patience)
  const other = await dial(t, relay.port)
  await eventually(() => other.socket.closed, patience)
})

test('a lost answer is one whose request was carried out', async (t) => {
  const { relay, client, heard } = await wire(t)
  relay.set({ kind: 'lose answers', probability: 1, random: always })
  client.socket.write('one')
  await eventually(() => client.code() === 'ECONNRESET', patience)
  t.equal(heard(), 'one')
  t.equal(client.text(), '')
})

test('a cut resets the connections of now, and the next one works', async (t) => {
  const { relay, client } = await wire(t)
  client.socket.write('one')
  await eventually(() => client.text() === 'ONE', patience)
  t.equal(relay.cut(), 1)
  await eventually(() => client.code() === 'ECONNRESET', patience)
  const other = await dial(t, relay.port)
  other.socket.write('two')
  await eventually(() => other.text() === 'TWO', patience)
})

test('two nodes see one address of each other, whoever speaks first', async (t) => {
  const { relay, nodes } = await network(t, 3)
  nodes[0]?.say(1, 'hello')
  await eventually(() => nodes[1]?.heard.length === 1, patience)
  t.same(nodes[1]?.heard, [{ text: 'hello', port: relay.ports[0] }])
  nodes[1]?.say(0, 'hello back')
  await eventually(() => nodes[0]?.heard.length === 1, patience)
  t.same(nodes[0]?.heard, [{ text: 'hello back', port: relay.ports[1] }])
  t.same(nodes[2]?.heard, [])
})

test('one direction is cut, the other is not, and both are after the heal', async (t) => {
  const { relay, nodes } = await network(t, 2)
  harm(relay, 0, 1, { loss: 1 })
  nodes[0]?.say(1, 'lost')
  nodes[1]?.say(0, 'heard')
  await eventually(() => nodes[0]?.heard.length === 1, patience)
  relay.heal()
  nodes[0]?.say(1, 'healed')
  await eventually(() => nodes[1]?.heard.length === 1, patience)
  t.equal(nodes[1]?.heard[0]?.text, 'healed')
})

test('datagrams are doubled, and arrive with a bit turned over', async (t) => {
  const { relay, nodes } = await network(t, 2)
  harm(relay, 0, 1, { duplication: 1 })
  nodes[0]?.say(1, 'twice')
  await eventually(() => nodes[1]?.heard.length === 2, patience)
  harm(relay, 0, 1, { corruption: 1 })
  nodes[0]?.say(1, 'abc')
  await eventually(() => nodes[1]?.heard.length === 3, patience)
  t.equal(nodes[1]?.heard[2]?.text, '`bc', 'the lowest bit of the first byte')
})

test('a datagram that is kept back is overtaken', async (t) => {
  const { relay, nodes } = await network(t, 2)
  relay.harm(0, 1, { delayMsMax: 500, random: scripted([1, 1, 1, 0.9, 1, 1, 1, 0]) })
  nodes[0]?.say(1, 'first')
  nodes[0]?.say(1, 'second')
  await eventually(() => nodes[1]?.heard.length === 2, patience)
  t.same(
    nodes[1]?.heard.map(({ text }) => text),
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

/** A server that answers in capitals, a relay before it, and a client. */
async function wire(t: Test): Promise<{ relay: TcpRelay; client: Caller; heard: () => string }> {
  let heard = ''
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      heard += String(bytes)
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
  return { relay, client: await dial(t, relay.port), heard: () => heard }
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
  readonly heard: { text: string; port: number }[]
  say(to: number, text: string): void
}

async function network(t: Test, count: number): Promise<{ relay: UdpRelay; nodes: Node[] }> {
  const sockets = await Promise.all(Array.from({ length: count }, bound))
  const relay = await startUdpRelay(sockets.map((socket) => socket.address().port))
  t.teardown(async () => {
    for (const socket of sockets) socket.close()
    await relay.stop()
  })
  const nodes = sockets.map((socket) => {
    const heard: Node['heard'] = []
    socket.on('message', (bytes, { port }) => heard.push({ text: String(bytes), port }))
    return {
      heard,
      say: (to: number, text: string) => socket.send(text, relay.ports[to], '127.0.0.1'),
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
