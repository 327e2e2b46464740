// A node starts and stops, and leaves nothing running.
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

/** Starts two nodes that know each other, and records the events that the second reports about the first. */
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

test('a name service that never answers neither delays the leave message nor blocks the stop for long', async (t) => {
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
  // If the stop waited for the name service, it would end after this timer.
  setTimeout(() => order.push('timer'), 200)
  await one.stop()
  t.same(order, ['left', 'timer'])
})

test('stop cancels pending lookups', async (t) => {
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

test('a stopped node does not start again, and leaves no socket behind', async (t) => {
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

test('start and stop are idempotent', async (t) => {
  const node = new GossipNode({
    ...options,
    transport: new MemoryNetwork().transport('10.0.0.1:1'),
  })
  t.same(await Promise.all([node.start(), node.start()]), ['10.0.0.1:1', '10.0.0.1:1'])
  await Promise.all([node.stop(), node.stop()])
  await t.rejects(node.start(), { message: 'gossip was stopped' })
})

test('stop resolves after three leave messages', async (t) => {
  const { one, network } = await startTwo(t)
  let leaves = 0
  network.delivers = (bytes, from) => {
    const messages = readMessages(Buffer.from(bytes).subarray(headerBytes, -tagBytes))
    const isLeave = typeof messages !== 'string' && messages.some(({ type }) => type === 'leave')
    if (isLeave && from === '10.0.0.1:1') leaves += 1
    return false
  }
  await one.stop()
  t.equal(leaves, 3)
})
