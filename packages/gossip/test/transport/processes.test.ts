// Tests with real processes and sockets: the effects of a signal, a stall and a flood of forged datagrams.
import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { GossipNode, KeyRing, type PeerEvent, type PresetName } from '../../src/index.ts'
import { clusterNumber, sealFrame, senderKey } from '../../src/wire/frame.ts'
import { packMessages } from '../../src/wire/messages.ts'
import { alive, startNode } from '../support/transport-suite.ts'

const program = fileURLToPath(new URL('../support/peer-process.ts', import.meta.url))
const loader = new URL('../../../../scripts/typescript/register.mjs', import.meta.url).href

async function startPeer(t: Test, index: number, ...more: string[]): Promise<ChildProcess> {
  const args = [`--import=${loader}`, '--conditions=@rouse/source', program, `${index}`, ...more]
  const env = { ...process.env, NODE_OPTIONS: '' }
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env })
  t.teardown(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })
  await once(lines, 'line')
  return child
}

/** Starts a node in this process, and records the peer events that it reports. */
async function startWatcher(t: Test, preset: PresetName = 'loopback') {
  const events: PeerEvent[] = []
  const onPeer = (_: unknown, event: PeerEvent) => events.push(event)
  const node = await startNode(t, 0, undefined, { onPeer, preset })
  return { ...node, events }
}

test('a killed process is suspect, then dead', async (t) => {
  const { gossip, address, events } = await startWatcher(t)
  const child = await startPeer(t, 1, address)
  await eventually(() => alive(gossip).length === 1)
  child.kill('SIGKILL')
  await eventually(() => events.includes('dead'), { timeoutMs: 20_000 })
  t.same(events.slice(0, 2), ['joined', 'suspect'])
})

test('a frozen process is suspect, and alive again when it resumes', async (t) => {
  const { gossip, address, events } = await startWatcher(t)
  const child = await startPeer(t, 1, address)
  await eventually(() => alive(gossip).length === 1)
  child.kill('SIGSTOP')
  await eventually(() => events.includes('suspect'))
  child.kill('SIGCONT')
  await eventually(() => alive(gossip).length === 1)
})

test('a process that stalled suspects no peer when it resumes', async (t) => {
  const { gossip, address, events } = await startWatcher(t, 'lan')
  await startPeer(t, 1, address, 'lan')
  await eventually(() => alive(gossip).length === 1)
  // Block this process for longer than a member may be silent. The peer's heartbeats wait in the socket.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500)
  const received = gossip.stats().datagramsReceived
  await eventually(() => gossip.stats().datagramsReceived > received + 5)
  t.same(events, ['joined'])
  t.ok(gossip.stats().stalls >= 1)
})

test('a flood of forged datagrams is counted, and hints still arrive', async (t) => {
  const [one, two] = await Promise.all([startNode(t, 0, undefined), startNode(t, 1, undefined)])
  one.gossip.discovered([two.address])
  await eventually(() => alive(one.gossip).length === 1 && alive(two.gossip).length === 1)
  const port = Number(one.address.split(':')[1])
  const forger = createSocket('udp4')
  t.teardown(() => forger.close())
  const forged = forgeries()
  const membersBefore = one.gossip.peers().map(({ address }) => address)
  const before = one.gossip.stats()
  const floodCount = 20_000
  const startedAt = performance.now()
  for (let sent = 0; sent < floodCount; sent += 20) {
    for (let index = 0; index < 20; index += 1) {
      forger.send(forged[(sent + index) % forged.length] ?? '', port, '127.0.0.1')
    }
    await nextTurn()
    if (sent % 2_000 === 0)
      two.gossip.hint({ kind: 'SCHEDULED', scope: 'x', count: 1, value: sent })
  }
  const flooded = () => {
    const { drops } = one.gossip.stats()
    return drops.mac + drops.key + drops.cluster + drops.magic + drops.length
  }
  await eventually(() => flooded() > floodCount * 0.5)
  const perSecond = (floodCount / (performance.now() - startedAt)) * 1_000
  t.comment(`${Math.round(perSecond)} forged datagrams per second`)
  two.gossip.hint({ kind: 'SCHEDULED', scope: 'x', count: 1, value: floodCount })
  await eventually(() => one.hints.some(({ value }) => value === floodCount))
  t.same(
    one.gossip.peers().map(({ address }) => address),
    membersBefore,
  )
  const { drops } = one.gossip.stats()
  t.match(drops, { decode: 0, shape: 0, unknown: before.drops.unknown, stale: 0 })
  t.ok(one.hints.every(({ scope }) => scope === 'x'))
})

/** Hints as a member would send them, but with an invalid signature. */
function forgeries(): Buffer[] {
  const hints = { type: 'hints', batches: [{ number: 1, hints: [] }] } as const
  const origin = {
    cluster: clusterNumber('test'),
    sender: senderKey('test', 'node-1'),
    incarnation: 2,
  }
  const genuine = new KeyRing('test', ['a secret of the test'])
  const other = new KeyRing('test', ['not the secret of it'])
  return Array.from({ length: 500 }, (_, index) => {
    const bytes = sealFrame(origin, 1_000_000 + index, packMessages([hints]), other)
    if (index % 4 > 0) bytes.writeUInt8(genuine.keyId, 4)
    if (index % 7 === 0) bytes.writeUInt8(index & 255, index % bytes.length)
    return bytes
  })
}

test('stop waits for a pending start, and returns at once if there was none', async (t) => {
  const options = {
    clusterId: 'test',
    nodeId: 'n',
    incarnation: 1,
    secrets: [],
    bind: { host: '127.0.0.1', port: 0 },
    onHint: () => {},
  }
  await new GossipNode(options).stop()
  const node = new GossipNode(options)
  const starting = node.start()
  await node.stop()
  t.match(await starting, /^127\.0\.0\.1:\d+$/)
  t.equal(node.stats().datagramsSent, 0)
})
