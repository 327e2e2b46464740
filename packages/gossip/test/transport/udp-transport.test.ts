import type { BindOptions, Socket, SocketOptions } from 'node:dgram'
import * as dgram from 'node:dgram'
import { networkInterfaces } from 'node:os'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { UdpTransport } from '../../src/index.ts'
import { alive, startNode, transportSuite } from '../support/transport-suite.ts'

const hasIPv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
)

transportSuite('IPv4', () => ({
  make: () => new UdpTransport({ host: '127.0.0.1', port: 0 }),
  nowhere: '127.0.0.1:9',
}))

if (hasIPv6) {
  transportSuite('IPv6', () => ({
    make: () => new UdpTransport({ host: '::1', port: 0 }),
    nowhere: '[::1]:9',
  }))
}

test('a dual-stack socket sends to both families', { skip: !hasIPv6 }, async (t) => {
  const seen: string[] = []
  const both = new UdpTransport({ host: '::', port: 0 })
  await both.start((_, from) => seen.push(from))
  t.teardown(() => both.stop())
  const port = Number(both.address.split(':').at(-1))
  for (const host of ['127.0.0.1', '::1']) {
    const heard: string[] = []
    const one = new UdpTransport({ host, port: 0 })
    await one.start((_, from) => heard.push(from))
    t.teardown(() => one.stop())
    const address = host === '::1' ? `[::1]:${port}` : `${host}:${port}`
    one.send(Buffer.from('x'), address)
    await eventually(() => seen.includes(one.address))
    both.send(Buffer.from('x'), one.address)
    await eventually(() => heard.includes(address))
  }
})

test('the socket buffers datagrams while the process is busy', async (t) => {
  let received = 0
  const busy = new UdpTransport({ host: '127.0.0.1', port: 0 })
  await busy.start(() => {
    received += 1
  })
  t.teardown(() => busy.stop())
  // Linux reports twice the requested size, up to the limit of the machine.
  t.ok(busy.receiveBufferBytes >= 400_000, `${busy.receiveBufferBytes} bytes`)
  const sender = new UdpTransport({ host: '127.0.0.1', port: 0 })
  await sender.start(() => {})
  t.teardown(() => sender.stop())
  // All datagrams are sent in this turn of the event loop, before the receiver can read.
  for (let count = 0; count < 150; count += 1) sender.send(Buffer.alloc(1_200), busy.address)
  await eventually(() => received === 150)
})

test('a port in use is refused, and the next try opens a new socket', async (t) => {
  const one = new UdpTransport({ host: '127.0.0.1', port: 0 })
  await one.start(() => {})
  const port = Number(one.address.split(':')[1])
  const other = new UdpTransport({ host: '127.0.0.1', port })
  const openSockets = () => {
    return process.getActiveResourcesInfo().filter((name) => name === 'UDPWrap').length
  }
  await t.rejects(
    other.start(() => {}),
    { code: 'EADDRINUSE' },
  )
  await eventually(() => openSockets() === 1)
  await one.stop()
  await other.start(() => {})
  t.equal(other.address, `127.0.0.1:${port}`)
  await other.stop()
})

/** Starts a transport with a socket that the test controls. Returns the options of the socket as well. */
async function startWatched(t: Test) {
  const asked: { lookup?: SocketOptions['lookup']; bind?: BindOptions } = {}
  let socket: Socket | undefined
  const createSocket = (options: SocketOptions, onMessage: () => void) => {
    const made = dgram.createSocket(options, onMessage)
    const bind = made.bind.bind(made) as (...args: unknown[]) => Socket
    made.bind = (...args: unknown[]) => {
      asked.bind = args[0] as BindOptions
      return bind(...args)
    }
    asked.lookup = options.lookup
    socket = made
    return made
  }
  const transport = new UdpTransport({ host: '127.0.0.1', port: 0 }, {
    ...dgram,
    createSocket,
  } as typeof dgram)
  t.teardown(() => transport.stop())
  await transport.start(() => {})
  if (socket === undefined) throw new Error('no socket was created')
  return { transport, socket, asked }
}

test('the socket is exclusive to the process and does not resolve addresses', async (t) => {
  const { asked } = await startWatched(t)
  t.equal(asked.bind?.exclusive, true)
  let isCalled = false
  asked.lookup?.('10.0.0.5', 4 as never, (error, address, family) => {
    isCalled = true
    t.same([error, address, family], [null, '10.0.0.5', 4])
  })
  t.ok(isCalled, 'synchronously')
})

test('a socket error is counted, and the node keeps running', async (t) => {
  const { transport, socket } = await startWatched(t)
  socket.emit('error', new Error('the network is gone'))
  t.equal(transport.failures, 1)
})

test('the send queue is bounded when the network is saturated', async (t) => {
  const { transport, socket } = await startWatched(t)
  const sent: unknown[] = []
  socket.send = (...args: unknown[]) => sent.push(args)
  socket.getSendQueueSize = () => 256 * 2 ** 10
  transport.send(Buffer.from('x'), '127.0.0.1:9')
  socket.getSendQueueSize = () => 256 * 2 ** 10 + 1
  transport.send(Buffer.from('x'), '127.0.0.1:9')
  t.equal(sent.length, 1)
  t.equal(transport.failures, 1)
})

test('a socket counts datagrams that it cannot send', async (t) => {
  const one = new UdpTransport({ host: '127.0.0.1', port: 0 })
  await one.start(() => {})
  t.teardown(() => one.stop())
  one.send(Buffer.from('x'), '[::1]:4601')
  one.send(Buffer.from('x'), 'a.name:4601')
  one.send(Buffer.alloc(70_000), '127.0.0.1:9')
  await eventually(() => one.failures === 3)
})

test("a node reports its socket's send failures and receive buffer", async (t) => {
  const { gossip } = await startNode(t, 0, undefined, { peers: ['[fd00::1]:4601'] })
  await eventually(() => gossip.stats().sendFailures > 0)
  t.ok(gossip.stats().receiveBufferBytes >= 400_000)
})

test('nodes that know each other by name meet', async (t) => {
  const first = await startNode(t, 0, undefined)
  const port = first.address.split(':')[1]
  const second = await startNode(t, 1, undefined, { peers: [`localhost:${port}`] })
  await eventually(() => alive(first.gossip).length === 1 && alive(second.gossip).length === 1)
})

test('an advertised address replaces the bound one', async (t) => {
  const { address } = await startNode(t, 0, undefined, { advertise: 'node-0.internal:7000' })
  t.equal(address, 'node-0.internal:7000')
  const other = await startNode(t, 1, undefined, { advertise: '10.9.8.7' })
  t.match(other.address, /^10\.9\.8\.7:\d+$/)
})

test('a node bound to every interface advertises one of them', async (t) => {
  const { address } = await startNode(t, 0, undefined, { bind: { host: '0.0.0.0', port: 0 } })
  t.notMatch(address, /^0\.0\.0\.0/)
})
