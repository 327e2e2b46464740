import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { test } from 'tap'
import { GossipConfigError, GossipNode, type GossipNodeOptions, KeyRing } from '../../src/index.ts'
import { acceptedBytesMax, tagBytes } from '../../src/wire/frame.ts'
import { VirtualCluster } from '../support/virtual-cluster.ts'

const first = 'the first of two secrets'
const second = 'the second of two secrets'

test('a ring signs with its first secret and verifies with all', async (t) => {
  const both = new KeyRing('c', [first, second])
  const bytes = Buffer.alloc(100)
  new KeyRing('c', [second]).sign(bytes, 80)
  t.equal(both.verify(new KeyRing('c', [second]).keyId, bytes, 80), 'genuine')
  t.equal(both.keyId, new KeyRing('c', [first]).keyId)
  t.same(
    both.verifiedByKey().map(({ verified }) => verified),
    [0, 1],
  )
  both.replace([second, first])
  t.same(
    both.verifiedByKey().map(({ verified }) => verified),
    [1, 0],
  )
  both.replace([first])
  t.equal(both.verify(new KeyRing('c', [second]).keyId, bytes, 80), 'key')
})

test('a tag is the start of an HMAC-SHA256 with the derived key', async (t) => {
  const ring = new KeyRing('c', [first])
  const key = Buffer.from(hkdfSync('sha256', first, 'c', 'rouse gossip 1', 33)).subarray(0, 32)
  for (const length of [0, 1, 55, 56, 64, 100, acceptedBytesMax - tagBytes]) {
    const bytes = randomBytes(acceptedBytesMax)
    ring.sign(bytes, length)
    const digest = createHmac('sha256', key).update(bytes.subarray(0, length)).digest()
    t.ok(digest.compare(bytes, length, length + tagBytes, 0, tagBytes) === 0, `${length} bytes`)
    t.equal(ring.verify(ring.keyId, bytes, length), 'genuine')
    bytes.writeUInt8(bytes.readUInt8(length) ^ 1, length)
    t.equal(ring.verify(ring.keyId, bytes, length), 'mac')
  }
})

test('unusable secrets are refused with a message that says what to do', async (t) => {
  const ring = new KeyRing('c', [first])
  t.throws(() => ring.replace(['short']), {
    code: 'gossip_secret_invalid',
    message: /openssl rand/,
  })
  t.throws(() => ring.replace([first, first]), { code: 'gossip_secret_invalid' })
  t.throws(() => ring.replace([first, second, 'x'.repeat(20), 'y'.repeat(20)]), {
    code: 'gossip_secret_invalid',
  })
  t.equal(ring.keyId, new KeyRing('c', [first]).keyId, 'the ring is unchanged')
})

test('without a secret gossip binds to loopback only', async (t) => {
  const options = {
    clusterId: 'c',
    nodeId: 'n',
    incarnation: 1,
    secrets: [],
    bind: { host: '0.0.0.0', port: 4601 },
    onHint: () => {},
  } satisfies GossipNodeOptions
  for (const host of ['0.0.0.0', '::', '10.0.0.5', 'node.internal']) {
    const make = () => new GossipNode({ ...options, bind: { host, port: 4601 } })
    t.throws(make, { code: 'gossip_secret_missing', message: /openssl.*127\.0\.0\.1/ })
    t.throws(make, GossipConfigError)
  }
  for (const host of ['127.0.0.1', '127.9.9.9', '::1', 'localhost', '::ffff:127.0.0.1']) {
    t.ok(new GossipNode({ ...options, bind: { host, port: 4601 } }))
  }
  const node = new GossipNode({ ...options, secrets: [first] })
  t.throws(() => node.replaceSecrets([]), { code: 'gossip_secret_missing' })
  t.throws(() => new GossipNode({ ...options, secrets: [first], nodeId: 'x'.repeat(65) }), {
    code: 'gossip_name_invalid',
  })
  t.throws(() => new GossipNode({ ...options, secrets: [first], peers: ['10.0.0.5'] }), {
    code: 'gossip_address_invalid',
  })
})

test('rotating the secret of a running cluster refuses no genuine datagram', async (t) => {
  const rings = [0, 1, 2, 3].map(() => new KeyRing('simulated', [first]))
  const cluster = new VirtualCluster()
  for (const [index, signer] of rings.entries()) cluster.start(index, undefined, signer)
  cluster.discoverAll()
  cluster.network.runFor(300)
  const hints = () => {
    const { node } = cluster.at(0)
    const hint = { kind: 'MESSAGE_AVAILABLE', scope: 'orders', count: 1 } as const
    cluster.network.act(node, (core, now) => core.hint(hint, now))
    cluster.network.runFor(1)
  }
  // Each step of the rotation reaches one node after the other, with hints and heartbeats in between.
  const orders = [
    [3, 0, 2, 1],
    [1, 3, 0, 2],
    [2, 1, 0, 3],
  ]
  for (const [step, secrets] of [[first, second], [second, first], [second]].entries()) {
    for (const index of orders[step] ?? []) {
      rings[index]?.replace(secrets)
      for (let count = 0; count < 300; count += 1) hints()
    }
  }
  for (const { node, lost } of cluster.nodes) {
    const { drops } = node.core.stats()
    t.match(drops, { key: 0, mac: 0 })
    t.same(lost, [])
  }
  t.equal(cluster.at(1).hints.length, cluster.at(2).hints.length)
  const late = cluster.start(4, undefined, new KeyRing('simulated', [first]))
  cluster.discoverAll()
  cluster.network.runFor(1_000)
  t.same(late.events, [], 'a node with only the old secret is not a member')
  t.ok(cluster.at(0).node.core.stats().drops.key > 0)
})
