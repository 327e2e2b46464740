// Which peers are missed: those that write to the database and are not heard, or do not hear us.
import type { PeerView } from '@rouse/gossip'
import type { SeenNode } from '@rouse/storage'
import { test } from 'tap'
import { SilentPeers } from '../../src/cluster/silent-peers.ts'

const graceMs = 1_500

/** As the database lists it. */
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

/** As gossip knows it. */
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

test('a node that is heard and hears us is not missed, however long we know it', async (t) => {
  const silent = new SilentPeers()
  for (const nowMs of [0, graceMs, 10 * graceMs]) {
    t.same(silent.find([listed('b')], [known('b', 'alive')], nowMs), [])
  }
})

test('one that does not hear us is missed at once: our hints do not reach it', async (t) => {
  const deaf = known('b', 'alive', { hearsUs: false })
  t.same(new SilentPeers().find([listed('b')], [deaf], 0), ['b'])
})

test('a node that was never heard has time to be, from when it was first listed', async (t) => {
  const silent = new SilentPeers()
  const beginsMs = 5_000
  t.same(silent.find([listed('b')], [], beginsMs), [])
  t.same(silent.find([listed('b')], [], beginsMs + graceMs - 1), [])
  t.same(silent.find([listed('b')], [], beginsMs + graceMs), ['b'])
})

test('each has its own time, and a new life of a node has it anew', async (t) => {
  const silent = new SilentPeers()
  t.same(silent.find([listed('b')], [], 0), [])
  t.same(silent.find([listed('b'), listed('c')], [], graceMs), ['b'])
  t.same(silent.find([listed('b', 2), listed('c')], [], 2 * graceMs), ['c'])
  t.same(silent.find([listed('b', 2), listed('c')], [], 3 * graceMs), ['b', 'c'])
})

test('one that was no longer listed has its time anew when it is listed again', async (t) => {
  const silent = new SilentPeers()
  t.same(silent.find([listed('b')], [], 0), [])
  t.same(silent.find([], [], graceMs), [])
  t.same(silent.find([listed('b')], [], 2 * graceMs), [])
})

test('a node that was heard and fell silent is missed at once', async (t) => {
  for (const state of ['suspect', 'unreachable', 'dead'] as const) {
    t.same(new SilentPeers().find([listed('b')], [known('b', state)], 0), ['b'], state)
  }
})

test('one that said goodbye is not missed, though it is listed a while longer', async (t) => {
  const silent = new SilentPeers()
  t.same(silent.find([listed('b')], [known('b', 'left')], 0), [])
  t.same(silent.find([listed('b')], [known('b', 'left')], 10 * graceMs), [])
})

test('its next life has time to be heard, and is missed then', async (t) => {
  for (const state of ['left', 'dead'] as const) {
    const silent = new SilentPeers()
    t.same(silent.find([listed('b', 2)], [known('b', state)], 0), [], state)
    t.same(silent.find([listed('b', 2)], [known('b', state)], graceMs), ['b'], state)
  }
})

test('a peer that gossip knows and the database does not list is nobody to be missed', async (t) => {
  t.same(new SilentPeers().find([], [known('b', 'dead')], 0), [])
})
