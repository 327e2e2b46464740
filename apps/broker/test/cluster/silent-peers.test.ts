// Which peers are silent: those that write to the database, but whose gossip we do not receive, or that do
// not receive ours.
import type { PeerView } from '@rouse/gossip'
import type { SeenNode } from '@rouse/storage'
import { test } from 'tap'
import { SilentPeers } from '../../src/cluster/silent-peers.ts'

const graceMs = 1_500

/** A node as the database lists it. */
function listed(id: string, incarnation = 1): SeenNode {
  return {
    id,
    incarnation,
    httpUrl: null,
    gossipAddress: `${id}:4601`,
    version: '1',
    uptimeMs: 0,
    silentMs: 0,
  }
}

/** A node as gossip sees it. */
function known(nodeId: string, state: PeerView['state'], more: Partial<PeerView> = {}): PeerView {
  return {
    nodeId,
    address: `${nodeId}:4601`,
    incarnation: 1,
    state,
    inStateMs: 0,
    heardAgoMs: 0,
    hearsUs: true,
    rttMs: 1,
    interest: 'unknown',
    hintsSent: 0,
    hintsReceived: 0,
    hintBatchesLost: 0,
    datagramsSent: 0,
    datagramsReceived: 0,
    replaysDropped: 0,
    ...more,
  }
}

test('a peer that is reachable in both directions is never silent', async (t) => {
  const silent = new SilentPeers()
  for (const nowMs of [0, graceMs, 10 * graceMs]) {
    t.same(silent.find([listed('b')], [known('b', 'alive')], nowMs), [])
  }
})

test('a peer that does not receive our gossip is silent at once', async (t) => {
  const deaf = known('b', 'alive', { hearsUs: false })
  t.same(new SilentPeers().find([listed('b')], [deaf], 0), ['b'])
})

test('a new node has a grace period from when it is first listed', async (t) => {
  const silent = new SilentPeers()
  const beginsMs = 5_000
  t.same(silent.find([listed('b')], [], beginsMs), [])
  t.same(silent.find([listed('b')], [], beginsMs + graceMs - 1), [])
  t.same(silent.find([listed('b')], [], beginsMs + graceMs), ['b'])
})

test('each node has its own grace period, and a restart begins a new one', async (t) => {
  const silent = new SilentPeers()
  t.same(silent.find([listed('b')], [], 0), [])
  t.same(silent.find([listed('b'), listed('c')], [], graceMs), ['b'])
  t.same(silent.find([listed('b', 2), listed('c')], [], 2 * graceMs), ['c'])
  t.same(silent.find([listed('b', 2), listed('c')], [], 3 * graceMs), ['b', 'c'])
})

test('a node that is listed again gets a new grace period', async (t) => {
  const silent = new SilentPeers()
  t.same(silent.find([listed('b')], [], 0), [])
  t.same(silent.find([], [], graceMs), [])
  t.same(silent.find([listed('b')], [], 2 * graceMs), [])
})

test('a known peer that becomes unreachable is silent at once', async (t) => {
  for (const state of ['suspect', 'unreachable', 'dead'] as const) {
    t.same(new SilentPeers().find([listed('b')], [known('b', state)], 0), ['b'], state)
  }
})

test('a node that sent a leave message is not silent while it is still listed', async (t) => {
  const silent = new SilentPeers()
  t.same(silent.find([listed('b')], [known('b', 'left')], 0), [])
  t.same(silent.find([listed('b')], [known('b', 'left')], 10 * graceMs), [])
})

test('the restart of a node that left gets a grace period, and is silent after it', async (t) => {
  for (const state of ['left', 'dead'] as const) {
    const silent = new SilentPeers()
    t.same(silent.find([listed('b', 2)], [known('b', state)], 0), [], state)
    t.same(silent.find([listed('b', 2)], [known('b', state)], graceMs), ['b'], state)
  }
})

test('a peer that the database does not list is not silent', async (t) => {
  t.same(new SilentPeers().find([], [known('b', 'dead')], 0), [])
})
