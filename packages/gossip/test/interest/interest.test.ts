import fc from 'fast-check'
import { test } from 'tap'
import { routeOf } from '../../src/hints/route.ts'
import type { OutgoingHint } from '../../src/index.ts'
import { interestEntriesMax, OwnInterest } from '../../src/interest/own-interest.ts'
import { entryBytes, PeerInterest } from '../../src/interest/peer-interest.ts'
import { addressOf, VirtualCluster } from '../support/virtual-cluster.ts'

const lingerMs = 10_000
const hint: OutgoingHint = { kind: 'MESSAGE_AVAILABLE', scope: 'orders', count: 1 }

test('a peer that holds the digest wants every key of the last 10 s, and no other', async () => {
  const step = fc.record({
    afterMs: fc.nat(8_000),
    keys: fc.oneof(
      { weight: 6, arbitrary: fc.uniqueArray(fc.nat(40), { maxLength: 12 }) },
      { weight: 1, arbitrary: fc.uniqueArray(fc.nat(400), { minLength: 130, maxLength: 160 }) },
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
        own.set({ version: version + 1, entries: keys.map(entryOf) }, now)
        if (own.refresh(now)) peer.receive(own.message)
        if (own.callerVersion(peer.version) !== version + 1) throw new Error('version')
        for (const [key, until] of wantedUntil) {
          if (until > now && !wants(peer, entryOf(key))) throw new Error(`${key} at ${now}`)
        }
        if (peer.size === 'all' || peer.version === 0) continue
        const { scope, group } = entryOf(0)
        for (const never of [
          { scope: 'q/never', group },
          { scope, group: 'never' },
        ])
          if (wants(peer, never)) throw new Error('too much')
      }
    }),
    { numRuns: 300 },
  )
})

/** Each key belongs to one of three consumer groups. */
function entryOf(key: number) {
  return { scope: `q/${key}`, group: `g${key % 3}` }
}

function wants(peer: PeerInterest, { scope, group }: ReturnType<typeof entryOf>): boolean {
  return peer.wants(routeOf({ ...hint, keys: [scope], group }))
}

test('more entries than fit into a datagram become everything, and fewer become a list again', async (t) => {
  const own = new OwnInterest(lingerMs)
  const many = Array.from({ length: interestEntriesMax + 1 }, (_, index) => entryOf(index))
  own.set({ version: 1, entries: many.slice(1) }, 0)
  own.refresh(0)
  t.equal(own.message.entries.length, interestEntriesMax * entryBytes)
  own.set({ version: 2, entries: many }, 1)
  t.equal(own.refresh(1), true)
  t.equal(own.message.entries, 'all')
  own.set({ version: 3, entries: [...many, { scope: 'q/more', group: 'g' }] }, 2)
  t.equal(own.refresh(2), false, 'everything covers the new entry')
  t.equal(own.callerVersion(own.message.version), 3)
  own.set({ version: 4, entries: [entryOf(0)] }, 3)
  own.refresh(3)
  t.equal(own.message.entries, 'all', 'withdrawn entries linger')
  t.equal(own.dirtyAt, 3 + lingerMs)
  own.refresh(3 + lingerMs)
  t.equal(own.message.entries.length, entryBytes)
})

test('an entry is a scope and a consumer group', async (t) => {
  const own = new OwnInterest(lingerMs)
  const peer = new PeerInterest()
  const entries = [
    { scope: 'q/a', group: 'g' },
    { scope: 'q/b', group: 'h' },
    { scope: 'q/a', group: 'h' },
    { scope: 'q/a', group: 'g' },
  ]
  own.set({ version: 1, entries }, 0)
  own.refresh(0)
  peer.receive(own.message)
  t.equal(peer.size, 3, 'equal entries count once')
  const isWanted = (keys: string[], more: Partial<OutgoingHint> = {}) =>
    peer.wants(routeOf({ ...hint, keys, ...more }))
  t.ok(isWanted(['q/a']))
  t.notOk(isWanted(['q/c']))
  t.ok(isWanted(['q/c', 'q/b']))
  t.notOk(isWanted(['q/b'], { group: 'g' }), 'another consumer group waits for this scope')
  t.ok(isWanted(['q/a', 'q/b'], { group: 'g' }))
  t.ok(isWanted(['q/a'], { served: new Set(['g']) }), 'h is not served')
  t.notOk(isWanted(['q/a'], { served: new Set(['g', 'h']) }))
  t.notOk(isWanted(['q/b'], { served: new Set(['h']) }))
  t.notOk(isWanted(['q/a'], { group: 'g', served: new Set(['g']) }))
  t.ok(peer.wants(routeOf({ ...hint, served: new Set(['g', 'h']) })), 'a hint for every peer')
  t.same(own.groupsFor(['q/a', 'q/c']), new Set(['g', 'h']))
  own.set({ version: 2, entries: [] }, 1)
  own.refresh(1)
  t.same(own.groupsFor(['q/b']), new Set(['h']), 'withdrawn, but peers count on it')
  t.equal(own.removedVersion, 0)
  own.refresh(1 + lingerMs)
  t.same(own.groupsFor(['q/b']), new Set())
  t.equal(own.removedVersion, own.message.version)
})

test('a peer whose interest is unknown or outdated wants every hint', async (t) => {
  const peer = new PeerInterest()
  const isWanted = (...keys: string[]) =>
    peer.wants(routeOf({ ...hint, keys, served: new Set(['g']) }))
  t.ok(isWanted('q/x'), 'the interest is unknown')
  t.equal(peer.size, 'unknown')
  peer.noteVersion(0)
  t.notOk(isWanted('q/x'), 'the peer never had a waiter')
  t.equal(peer.size, 0)
  const own = new OwnInterest(lingerMs)
  own.set({ version: 1, entries: [{ scope: 'q/a', group: 'h' }] }, 0)
  own.refresh(0)
  peer.noteVersion(3)
  t.ok(isWanted('q/x'), 'the peer has had waiters since')
  t.equal(peer.size, 'unknown')
  peer.receive({ ...own.message, version: 3 })
  t.notOk(isWanted('q/x'))
  t.ok(isWanted('q/x', 'q/a'))
  t.ok(peer.wants(routeOf(hint)), 'the hint is for every peer')
  t.notOk(peer.receive({ type: 'interest', version: 2, entries: 'all' }), 'an old version')
  t.notOk(isWanted('q/x'))
  peer.noteVersion(4)
  t.ok(isWanted('q/x'), 'a newer version exists')
})

test('a node that never had a waiter gets no hints', async (t) => {
  const cluster = VirtualCluster.of(2)
  const { network } = cluster
  for (let push = 0; push < 500; push += 1) {
    network.act(cluster.at(0).node, (core, now) => core.hint({ ...hint, keys: ['q/orders'] }, now))
    network.runFor(10)
  }
  t.equal(cluster.at(0).node.core.stats().hintDatagramsSent, 0)
  t.same(cluster.at(1).hints, [])
  t.same(cluster.at(1).lost, [])
  network.act(cluster.at(0).node, (core, now) => core.hint(hint, now))
  network.runFor(10)
  t.equal(cluster.at(1).hints.length, 1, 'a hint for every peer')
})

test('only interested peers get a hint', async (t) => {
  const cluster = VirtualCluster.of(10)
  const { network } = cluster
  for (const index of cluster.nodes.keys()) {
    cluster.wait(index, 1, [index < 3 ? 'q/orders' : 'q/else'])
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
  for (const index of cluster.nodes.keys()) {
    cluster.wait(index, 1, [index < 26 ? 'q/orders' : 'q/else'])
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

test('in a cluster of two, too, a hint goes only to a peer with waiters', async (t) => {
  const cluster = VirtualCluster.of(2)
  const { network } = cluster
  const push = () => {
    network.act(cluster.at(0).node, (core, now) => core.hint({ ...hint, keys: ['q/orders'] }, now))
    network.runFor(600)
    return cluster.at(1).hints.length
  }
  cluster.wait(1, 1, ['q/else'])
  network.runFor(100)
  t.equal(push(), 0)
  cluster.wait(1, 2, ['q/else', 'q/orders'])
  network.runFor(100)
  t.equal(push(), 1)
  cluster.wait(1, 3, ['q/else'])
  t.equal(push(), 2, 'withdrawn interest lingers')
  network.runFor(lingerMs + 1_000)
  t.equal(push(), 2)
  t.same(cluster.at(1).lost, [])
})

test('the version that all peers hold drops when a node joins, and rises when the node has it', async (t) => {
  const cluster = VirtualCluster.of(3)
  const { network } = cluster
  const waiter = cluster.at(0)
  cluster.wait(0, 5, ['q/a'])
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
  cluster.wait(0, 1, ['q/a'])
  network.runFor(100)
  t.same(waiter.echoed, [])
  network.mendAll()
  network.runFor(700)
  t.same(waiter.echoed, [1])
  network.crash(cluster.at(1).node)
  cluster.wait(0, 2, ['q/b'])
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
  cluster.wait(0, 1, ['q/a'])
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
  cluster.wait(0, 1, ['q/a'])
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
  const setInterest = (version: number, key: string) => cluster.wait(0, version, [key])
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
