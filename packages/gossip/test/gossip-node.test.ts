// When a node starts and stops, and what of it is left.
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { GossipNode, MemoryNetwork, type PeerEvent, type Transport } from '../src/index.ts'
import { headerBytes, tagBytes } from '../src/wire/frame.ts'
import { readMessages } from '../src/wire/message-reader.ts'
import { alive, startNode } from './support/transport-suite.ts'

const options = {
  clusterId: 'test',
  nodeId: 'node',
  incarnation: 1,
  secrets: [],
  bind: { host: '127.0.0.1', port: 0 },
  onHint: () => {},
}

/** Two nodes that know each other, and what becomes of the first one in the eyes of the second. */
async function startTwo(t: Test, options: Parameters<typeof startNode>[3] = {}) {
  const network = new MemoryNetwork()
  const one = await startNode(t, 1, network.transport('10.0.0.1:1'), options)
  const seen: { onEvent: (event: PeerEvent) => void } = { onEvent: () => {} }
  const other = await startNode(t, 2, network.transport('10.0.0.2:1'), {
    onPeer: (_, event) => seen.onEvent(event),
  })
  one.gossip.discovered([other.address])
  await eventually(() => alive(one.gossip).length === 1 && alive(other.gossip).length === 1)
  return { one: one.gossip, network, seen }
}

test('a name service that never answers keeps nobody from saying goodbye, nor for long from the end', async (t) => {
  let asked = 0
  const never = () => {
    asked += 1
    return new Promise<never>(() => {})
  }
  const names = { resolve4: never, resolve6: never, resolveSrv: never }
  const { one, seen } = await startTwo(t, { names, peers: ['silent.test:1'] })
  await eventually(() => asked === 2)
  const order: string[] = []
  seen.onEvent = (event) => order.push(event)
  // What waits for the name service comes after this.
  setTimeout(() => order.push('timer'), 200)
  await one.stop()
  t.same(order, ['left', 'timer'])
})

test('stop takes back what was asked', async (t) => {
  let isTakenBack = false
  let takeBack: ((reason: Error) => void) | undefined
  const names = {
    resolve4: () => {
      return new Promise<never>((_, reject) => {
        takeBack = reject
      })
    },
    resolve6: async () => ['::5'],
    resolveSrv: async () => [],
    cancel: () => {
      isTakenBack = true
      takeBack?.(new Error('cancelled'))
    },
  }
  const { one } = await startTwo(t, { names, peers: ['silent.test:1'] })
  await eventually(() => takeBack !== undefined)
  await one.stop()
  t.ok(isTakenBack)
})

test('a node that was stopped does not start again, and leaves no socket', async (t) => {
  const transport = new MemoryNetwork().transport('10.0.0.1:1')
  const starts: unknown[] = []
  const counted = Object.assign(Object.create(transport) as Transport, {
    start: async (...args: Parameters<Transport['start']>) => {
      starts.push(args)
    },
    stop: async () => {},
  })
  const node = new GossipNode({ ...options, transport: counted })
  await node.stop()
  await t.rejects(node.start(), { message: 'gossip was stopped' })
  t.same(starts, [])
})

test('start and stop may be called twice', async (t) => {
  const node = new GossipNode({
    ...options,
    transport: new MemoryNetwork().transport('10.0.0.1:1'),
  })
  t.same(await Promise.all([node.start(), node.start()]), ['10.0.0.1:1', '10.0.0.1:1'])
  await Promise.all([node.stop(), node.stop()])
  await t.rejects(node.start(), { message: 'gossip was stopped' })
})

test('stop waits until goodbye was said three times', async (t) => {
  const { one, network } = await startTwo(t)
  let goodbyes = 0
  network.delivers = (bytes, from) => {
    const messages = readMessages(Buffer.from(bytes).subarray(headerBytes, -tagBytes))
    const isGoodbye = typeof messages !== 'string' && messages.some(({ type }) => type === 'leave')
    if (isGoodbye && from === '10.0.0.1:1') goodbyes += 1
    return false
  }
  await one.stop()
  t.equal(goodbyes, 3)
})
