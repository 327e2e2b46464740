// The contract of every transport. Each implementation runs this suite in its test.
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { GossipNode, type GossipNodeOptions, type Hint, type Transport } from '../../src/index.ts'

export interface TransportKit {
  /** A transport with a new address. */
  readonly make: () => Transport
  /** An address of the same kind without a listener. */
  readonly nowhere: string
}

export function transportSuite(name: string, makeKit: () => TransportKit): void {
  test(`${name}: a datagram arrives unchanged, with the sender's address`, async (t) => {
    const { make } = makeKit()
    const received: { bytes: Buffer; from: string }[] = []
    const one = await started(t, make(), () => {})
    const other = await started(t, make(), (bytes, from) => received.push({ bytes, from }))
    const sent = [Buffer.alloc(0), Buffer.from([0]), Buffer.alloc(1_200, 7)]
    for (const bytes of sent) one.send(bytes, other.address)
    await eventually(() => received.length === sent.length)
    t.same(new Set(received.map(({ from }) => from)), new Set([one.address]))
    t.same(
      received.map(({ bytes }) => bytes.toString('hex')).toSorted(),
      sent.map((bytes) => bytes.toString('hex')).toSorted(),
    )
  })

  test(`${name}: a datagram without a receiver is lost silently`, async (t) => {
    const kit = makeKit()
    const received: string[] = []
    const one = await started(t, kit.make(), (bytes) => received.push(bytes.toString()))
    one.send(Buffer.from('lost'), kit.nowhere)
    one.send(Buffer.from('lost'), 'no address at all')
    one.send(Buffer.from('kept'), one.address)
    await eventually(() => received.length > 0)
    t.same(received, ['kept'])
  })

  test(`${name}: start and stop are idempotent, and nothing arrives after stop`, async (t) => {
    const { make } = makeKit()
    const transport = make()
    await transport.stop()
    let received = 0
    await transport.start(() => {
      received += 1
    })
    await transport.start(() => t.fail('the second start took effect'))
    const other = await started(t, make(), () => {})
    other.send(Buffer.from('x'), transport.address)
    await eventually(() => received === 1)
    const { address } = transport
    await transport.stop()
    await transport.stop()
    transport.send(Buffer.from('x'), other.address)
    other.send(Buffer.from('x'), address)
    const echo: number[] = []
    const third = await started(t, make(), () => echo.push(1))
    other.send(Buffer.from('x'), third.address)
    await eventually(() => echo.length === 1)
    t.equal(received, 1)
  })

  test(`${name}: nodes meet, send each other hints and leave`, async (t) => {
    const { make } = makeKit()
    const nodes = await Promise.all([0, 1, 2].map((index) => startNode(t, index, make())))
    const addresses = nodes.map(({ address }) => address)
    for (const { gossip } of nodes) gossip.discovered(addresses)
    await eventually(() => nodes.every(({ gossip }) => alive(gossip).length === 2))
    const entries = [{ scope: 'q/orders', group: 'g' }]
    for (const index of [0, 2]) nodes[index]?.gossip.setInterest({ version: 4, entries })
    await eventually(() => [0, 2].every((index) => nodes[index]?.echoed.at(-1) === 4))
    nodes[1]?.gossip.hint({ kind: 'PARTITION_FREE', scope: 'orders', count: 2, keys: ['q/orders'] })
    await eventually(() => nodes[0]?.hints.length === 1 && nodes[2]?.hints.length === 1)
    t.match(nodes[0]?.hints[0], { kind: 'PARTITION_FREE', scope: 'orders', count: 2 })
    await nodes[2]?.gossip.stop()
    await nodes[2]?.gossip.stop()
    await eventually(() => alive(nodes[0]?.gossip).join() === 'node-1')
    const left = nodes[0]?.gossip.peers().find(({ nodeId }) => nodeId === 'node-2')
    t.equal(left?.state, 'left')
  })
}

async function started(
  t: Test,
  transport: Transport,
  onDatagram: (bytes: Buffer, from: string) => void,
): Promise<Transport> {
  t.teardown(() => transport.stop())
  await transport.start(onDatagram)
  return transport
}

export function alive(gossip: GossipNode | undefined): string[] {
  const members = gossip?.peers().filter(({ state }) => state === 'alive') ?? []
  return members.map(({ nodeId }) => nodeId)
}

export async function startNode(
  t: Test,
  index: number,
  transport: Transport | undefined,
  options: Partial<GossipNodeOptions> = {},
) {
  const hints: Hint[] = []
  const echoed: number[] = []
  const gossip = new GossipNode({
    clusterId: 'test',
    nodeId: `node-${index}`,
    incarnation: index + 1,
    secrets: ['a secret of the test'],
    bind: { host: '127.0.0.1', port: 0 },
    preset: 'loopback',
    transport,
    onHint: (hint) => hints.push(hint),
    onInterestEchoed: (version) => echoed.push(version),
    ...options,
  })
  t.teardown(() => gossip.stop())
  return { gossip, hints, echoed, address: await gossip.start() }
}
