// Datagrams with a valid signature and arbitrary content. Only the decoder and the checks after it protect
// the node.
import { seededRandom } from '@rouse/testkit'
import { Packr } from 'msgpackr'
import { test } from 'tap'
import { KeyRing } from '../../src/index.ts'
import { clusterNumber, sealFrame, senderKey } from '../../src/wire/frame.ts'
import { packMessages } from '../../src/wire/messages.ts'
import { VirtualCluster } from '../support/virtual-cluster.ts'

const ring = new KeyRing('simulated', [])
const packr = new Packr({ useRecords: false })
const mutationCount = 10_000

/** The bodies to start from: real ones, and some that often break decoders. */
const seeds: Uint8Array[] = [
  packMessages([{ type: 'leave' }]),
  packMessages([
    { type: 'hello', isReply: false, nodeId: 'node-1', token: 2 ** 50, known: 3 },
    { type: 'interest', version: 3, entries: new Uint8Array(64) },
    {
      type: 'hints',
      batches: [
        { number: 9, hints: [{ kind: 'SCHEDULED', scope: 'a', part: 'b', count: 1, value: 5 }] },
      ],
    },
    { type: 'peers', addresses: ['10.0.0.3:1', '[::1]:2'] },
    { type: 'settled', to: new Uint8Array(4), settled: [9, 0, 10, 1] },
  ]),
  packr.pack([
    [2, ...Array<number>(11).fill(2 ** 52)],
    [9, 2 ** 53, 1],
    [11, Buffer.alloc(8), 1, 1, 1],
  ]),
  packr.pack([[7, [[1, [[1, '__proto__', 'constructor', 1, null, ['toString']]]]]]]),
  packr.pack({ __proto__: null, constructor: 1, length: 5 }),
  packr.pack([
    [12, 1, new Map([[1, 2]])],
    [12, 1, new Date(0)],
    [3, new Set([1])],
  ]),
  Buffer.from('a0a0d662fffffffc01', 'hex'),
  Buffer.from('dfffffffff', 'hex'),
  Buffer.from('ddffffffff', 'hex'),
  Buffer.from('c6ffffffff', 'hex'),
  Buffer.from('d47240920102', 'hex'),
  Buffer.from('c70978abcdefabcdefab', 'hex'),
  Buffer.concat([Buffer.alloc(1_100, 0x91), Buffer.from([1])]),
]

test('no signed content crashes a node', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  const { node } = cluster.at(0)
  const random = seededRandom(11)
  const origins = ['node-1', 'node-2', 'stranger'].map((nodeId, index) => ({
    cluster: clusterNumber('simulated'),
    sender: senderKey('simulated', nodeId),
    incarnation: index === 2 ? 99 : index + 2,
  }))
  const prototype = Object.getOwnPropertyNames(Object.prototype).join()
  const started = process.cpuUsage()
  for (let count = 0; count < mutationCount; count += 1) {
    const body = Buffer.from(random.pick(seeds))
    const changes = count < seeds.length ? 0 : 1 + random.below(4)
    for (let change = 0; change < changes; change += 1) {
      body.writeUInt8(random.below(256), random.below(body.length))
    }
    const cut = random.below(4) === 0 ? body.subarray(0, random.below(body.length)) : body
    const bytes = sealFrame(random.pick(origins), 1_000_000 + count, cut, ring)
    network.act(node, (core, now) => core.receive(bytes, '10.0.0.1:4601', now))
    if (count % 100 === 0) network.runFor(1)
  }
  const { user, system } = process.cpuUsage(started)
  t.ok((user + system) / 1_000 / mutationCount < 1, `${(user + system) / mutationCount} µs each`)
  const { drops } = node.core.stats()
  t.ok(drops.decode > 100 && drops.shape > 100, `${drops.decode} ${drops.shape}`)
  t.equal(drops.mac, 0)
  t.equal(Object.getOwnPropertyNames(Object.prototype).join(), prototype)
  t.equal(Object.keys(node.core.stats().drops).length, 16)
})

test('garbage is counted and not answered', async (t) => {
  const cluster = VirtualCluster.of(2)
  const { network } = cluster
  const { node } = cluster.at(0)
  const random = seededRandom(5)
  let sent = 0
  network.onSend = () => {
    sent += 1
  }
  const before = node.core.stats()
  for (let count = 0; count < 20_000; count += 1) {
    const bytes = Buffer.from(Array.from({ length: random.below(200) }, () => random.below(256)))
    if (random.below(2) === 0 && bytes.length > 2) bytes.writeUInt16BE(0x5247)
    network.act(node, (core, now) => core.receive(bytes, '10.6.6.6:1', now))
  }
  const after = node.core.stats()
  const dropped = Object.values(after.drops).reduce((sum, one) => sum + one, 0)
  t.equal(dropped - Object.values(before.drops).reduce((sum, one) => sum + one, 0), 20_000)
  t.equal(sent, 0)
})
