import fc from 'fast-check'
import { test } from 'tap'
import type { OutgoingHint } from '../../src/index.ts'
import { interestKeysMax, OwnInterest } from '../../src/interest/own-interest.ts'
import { keyHash, PeerInterest } from '../../src/interest/peer-interest.ts'
import { addressOf, VirtualCluster } from '../support/virtual-cluster.ts'

const lingerMs = 10_000
const hint: OutgoingHint = { kind: 'MESSAGE_AVAILABLE', scope: 'orders', count: 1 }

test('a peer that holds the digest wants every key of the last 10 s, and no other', async () => {
  const step = fc.record({
    afterMs: fc.nat(8_000),
    keys: fc.oneof(
      { weight: 6, arbitrary: fc.uniqueArray(fc.nat(40), { maxLength: 12 }) },
      { weight: 1, arbitrary: fc.uniqueArray(fc.nat(400), { minLength: 170, maxLength: 200 }) },
    ),
  })
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 15 }), (steps) => {
      const own = new OwnInterest(lingerMs)
      const peer = new PeerInterest()
      const wantedUntil = new Map<number, number>()
      let now = 0
      for (const [version, { afterMs, keys }] of steps.entries()) {
        now += afterMs
        for (const [key, until] of wantedUntil)
          if (until > now) wantedUntil.set(key, Math.min(until, now + lingerMs))
        for (const key of keys) wantedUntil.set(key, Infinity)
        own.set({ version: version + 1, keys: keys.map((key) => `q/${key}`) }, now)
        if (own.refresh(now)) peer.receive(own.message)
        for (const [key, until] of wantedUntil) {
          if (until > now && !peer.wants([keyHash(`q/${key}`)])) throw new Error(`${key} at ${now}`)
        }
        if (peer.size !== 'all' && peer.wants([keyHash('q/never')])) throw new Error('too much')
        if (own.callerVersion(peer.version) !== version + 1) throw new Error('version')
      }
    }),
    { numRuns: 300 },
  )
})

test('more keys than fit into a datagram become everything, and fewer become a list again', async (t) => {
  const own = new OwnInterest(lingerMs)
  const many = Array.from({ length: interestKeysMax + 1 }, (_, index) => `q/${index}`)
  own.set({ version: 1, keys: many.slice(1) }, 0)
  own.refresh(0)
  t.equal(own.message.hashes.length, interestKeysMax * 6)
  own.set({ version: 2, keys: many }, 1)
  t.equal(own.refresh(1), true)
  t.equal(own.message.hashes, 'all')
  own.set({ version: 3, keys: [...many, 'q/more'] }, 2)
  t.equal(own.refresh(2), false, 'everything covers the new key')
  t.equal(own.callerVersion(own.message.version), 3)
  own.set({ version: 4, keys: ['q/0'] }, 3)
  own.refresh(3)
  t.equal(own.message.hashes, 'all', 'withdrawn keys linger')
  t.equal(own.dirtyAt, 3 + lingerMs)
  own.refresh(3 + lingerMs)
  t.equal(own.message.hashes.length, 6)
})

test('a peer whose interest is unknown or outdated wants every hint', async (t) => {
  const peer = new PeerInterest()
  t.ok(peer.wants([1]), 'the interest is unknown')
  peer.receive({ type: 'interest', version: 3, hashes: new Uint8Array(6) })
  t.notOk(peer.wants([1]))
  t.ok(peer.wants([1, 0]))
  t.ok(peer.wants(undefined), 'the hint is for every peer')
  t.notOk(peer.receive({ type: 'interest', version: 2, hashes: 'all' }), 'an old version')
  t.notOk(peer.wants([1]))
  peer.noteVersion(4)
  t.ok(peer.wants([1]), 'a newer version exists')
})

test('in a cluster of more than eight nodes only interested peers get a hint', async (t) => {
  const cluster = VirtualCluster.of(10)
  const { network } = cluster
  for (const [index, { node }] of cluster.nodes.entries()) {
    const keys = index < 3 ? ['q/orders'] : ['q/else']
    network.act(node, (core, now) => core.setInterest({ version: 1, keys }, now))
  }
  network.runFor(100)
  network.act(cluster.at(9).node, (core, now) => core.hint({ ...hint, keys: ['q/orders'] }, now))
  network.act(cluster.at(9).node, (core, now) =>
    core.hint({ ...hint, scope: 'config', kind: 'QUEUE_CONFIG_CHANGED' }, now),
  )
  network.runFor(2_000)
  const told = cluster.nodes.map(({ hints }) => hints.map(({ hint: { scope } }) => scope).join())
  t.same(told.slice(0, 3), Array(3).fill('orders,config'))
  t.same(told.slice(3, 9), Array(6).fill('config'))
  t.ok(cluster.nodes.every(({ lost }) => lost.length === 0))
})

test('all interested peers get a hint, even if they do not fit into one datagram', async (t) => {
  const cluster = VirtualCluster.of(30)
  const { network } = cluster
  for (const [index, { node }] of cluster.nodes.entries()) {
    const keys = index < 26 ? ['q/orders'] : ['q/else']
    network.act(node, (core, now) => core.setInterest({ version: 1, keys }, now))
  }
  network.runFor(100)
  const contents = new Set<string>()
  network.onSend = (bytes) => contents.add(Buffer.from(bytes).toString('latin1'))
  network.act(cluster.at(29).node, (core, now) => core.hint({ ...hint, keys: ['q/orders'] }, now))
  network.runFor(1)
  t.equal(contents.size, 3, '26 recipients in groups of 12')
  network.runFor(2_000)
  t.same(
    cluster.nodes.map(({ hints }) => hints.length),
    [...Array(26).fill(1), 0, 0, 0, 0],
  )
  t.ok(cluster.nodes.every(({ lost }) => lost.length === 0))
})

test('in a cluster of eight nodes every peer gets a hint', async (t) => {
  const cluster = VirtualCluster.of(8)
  const { network } = cluster
  for (const { node } of cluster.nodes) {
    network.act(node, (core, now) => core.setInterest({ version: 1, keys: [] }, now))
  }
  network.runFor(100)
  network.act(cluster.at(0).node, (core, now) => core.hint({ ...hint, keys: ['q/orders'] }, now))
  network.runFor(10)
  t.ok(cluster.nodes.slice(1).every(({ hints }) => hints.length === 1))
})

test('the version that all peers hold drops when a node joins, and rises when the node has it', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  const waiter = cluster.at(0)
  network.act(waiter.node, (core, now) => core.setInterest({ version: 5, keys: ['q/a'] }, now))
  network.runFor(50)
  t.same(waiter.echoed, [5])
  cluster.start(3)
  cluster.discoverAll()
  network.runFor(100)
  t.same(waiter.echoed, [5, 0, 5])
})

test('a lost interest is sent again, and only peers that are heard hold the version back', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  const waiter = cluster.at(0)
  network.cut(waiter.node.address, cluster.at(1).node.address)
  network.act(waiter.node, (core, now) => core.setInterest({ version: 1, keys: ['q/a'] }, now))
  network.runFor(100)
  t.same(waiter.echoed, [])
  network.mendAll()
  network.runFor(700)
  t.same(waiter.echoed, [1])
  network.crash(cluster.at(1).node)
  network.act(waiter.node, (core, now) => core.setInterest({ version: 2, keys: ['q/b'] }, now))
  network.runFor(1_000)
  t.same(waiter.echoed, [1])
  network.runFor(5_000)
  t.same(waiter.echoed, [1, 2])
})

test('an unreachable member does not hold the version back', async (t) => {
  const cluster = VirtualCluster.of(4)
  const { network } = cluster
  const waiter = cluster.at(0)
  network.cut(addressOf(1), addressOf(0))
  network.runFor(10_000)
  t.equal(waiter.stateOf('node-1'), 'unreachable')
  network.act(waiter.node, (core, now) => core.setInterest({ version: 1, keys: ['q/a'] }, now))
  network.runFor(500)
  t.equal(waiter.echoed.at(-1), 1)
})

test('a heartbeat that arrives after a later one is ignored', async (t) => {
  const cluster = VirtualCluster.of(2)
  const { network } = cluster
  const waiter = cluster.at(0)
  let overtaken = Buffer.alloc(0)
  network.cut(addressOf(1), addressOf(0))
  network.onSend = (bytes, from) => {
    if (from === addressOf(1)) overtaken = Buffer.from(bytes)
  }
  network.runFor(600)
  network.onSend = undefined
  network.mendAll()
  network.act(waiter.node, (core, now) => core.setInterest({ version: 1, keys: ['q/a'] }, now))
  network.runFor(600)
  t.same(waiter.echoed, [1])
  const { drops } = waiter.node.core.stats()
  network.act(waiter.node, (core, now) => core.receive(overtaken, addressOf(1), now))
  network.runFor(100)
  t.same(waiter.node.core.stats().drops, drops, 'it was decoded')
  t.same(waiter.echoed, [1], 'and does not revoke that the interest is held')
})

test('a peer that knows of a newer interest than it holds sends every hint', async (t) => {
  const cluster = VirtualCluster.of(10)
  const { network } = cluster
  const [waiter, sender] = [cluster.at(0).node, cluster.at(1).node]
  const setInterest = (version: number, key: string) => {
    network.act(waiter, (core, now) => core.setInterest({ version, keys: [key] }, now))
  }
  setInterest(1, 'q/old')
  network.runFor(600)
  t.notOk(sender.core.tells('node-0', ['q/new']))
  network.cut(waiter.address, sender.address)
  setInterest(2, 'q/new')
  network.runFor(10)
  // The sender does not get the interest. Cut the other direction, so that the waiter does not notice.
  network.mendAll()
  network.cut(sender.address, waiter.address)
  network.runFor(600)
  t.ok(sender.core.tells('node-0', ['q/new']))
  t.equal(sender.core.peers(network.now).find(({ nodeId }) => nodeId === 'node-0')?.interest, 1)
})
