// One node collects the stats of all nodes, even if some of them give no valid response.
import { test } from 'tap'
import { clusterStats } from '../../src/cluster/cluster-stats.ts'

/** A response of `/stats`. */
function figuresOf(node: string, peers: readonly string[] = []) {
  return {
    node,
    local_sidecars: 2,
    requests: 10,
    waiting: { total: 3 },
    wakes: { udp: 1, local: 2 },
    queries_per_second: { push: 0.5 },
    mode: { mode: 'healthy' },
    group_backoff: { groups: [{ key: 'q/*/g', waiting: 3 }] },
    peers: peers.map((id) => ({ id, state: 'alive', url: `http://${id}` })),
  }
}

/** Returns the given response of each node, by its address. */
function answering(answers: Readonly<Record<string, unknown>>) {
  return async (url: string): Promise<unknown> => answers[url]
}

test('counters of all nodes are added up', async (t) => {
  const ask = answering({ 'http://b': figuresOf('b'), 'http://c': figuresOf('c') })
  t.match(await clusterStats(figuresOf('a', ['c', 'b']), ask), {
    nodes: [{ node: 'a' }, { node: 'b' }, { node: 'c' }],
    unreachable: [],
    totals: {
      nodes: 3,
      local_sidecars: 6,
      waiting: 9,
      requests: 30,
      wakes: { udp: 3, local: 6 },
      queries_per_second: { push: 1.5 },
    },
  })
})

test('a peer with an unexpected response is listed as unreachable, and the others are still reported', async (t) => {
  const good = figuresOf('b')
  const odd: readonly [string, unknown][] = [
    ['it did not respond like a Rouse node', null],
    ['it did not respond like a Rouse node', []],
    ['it did not respond like a Rouse node', 'fine'],
    [
      'it did not respond like a Rouse node: node, local_sidecars, requests, wakes, queries_per_second, mode, peers, waiting, group_backoff',
      {},
    ],
    ['it did not respond like a Rouse node: node', { ...good, node: 7 }],
    ['it did not respond like a Rouse node: requests', { ...good, requests: '10' }],
    ['it did not respond like a Rouse node: wakes', { ...good, wakes: [1] }],
    [
      'it did not respond like a Rouse node: queries_per_second',
      { ...good, queries_per_second: null },
    ],
    ['it did not respond like a Rouse node: waiting', { ...good, waiting: { total: null } }],
    ['it did not respond like a Rouse node: group_backoff', { ...good, group_backoff: {} }],
    [
      'it did not respond like a Rouse node: group_backoff',
      { ...good, group_backoff: { groups: [{}] } },
    ],
  ]
  for (const [error, answer] of odd) {
    const ask = answering({ 'http://b': figuresOf('b'), 'http://c': answer })
    const stats = await clusterStats(figuresOf('a', ['b', 'c']), ask)
    t.same(stats.unreachable, [{ id: 'c', url: 'http://c', state: 'alive', error }])
    t.match(stats, { nodes: [{ node: 'a' }, { node: 'b' }], totals: { nodes: 2, waiting: 6 } })
  }
})

test('a peer without an address is unreachable, and a dead peer is listed without a request', async (t) => {
  const own = {
    ...figuresOf('a'),
    peers: [
      { id: 'b', state: 'alive', url: null },
      { id: 'c', state: 'left', url: 'http://c' },
      { id: 'd', state: 'dead', url: 'http://d' },
    ],
  }
  const asked: string[] = []
  const stats = await clusterStats(own, async (url) => void asked.push(url))
  t.match(stats.unreachable, [
    { id: 'b', error: 'its address is not known yet' },
    { id: 'd', state: 'dead', error: /^no gossip from it/ },
  ])
  t.same(asked, [])
})

test('a peer that our datagrams do not reach is asked over HTTP while it writes to the database', async (t) => {
  const peer = { state: 'dead', heardAgoMs: 9_000 }
  const own = {
    ...figuresOf('a'),
    peers: [
      { ...peer, id: 'b', url: 'http://b', wroteAgoMs: 8_999 },
      { ...peer, id: 'c', url: 'http://c', wroteAgoMs: 9_000 },
    ],
  }
  const ask = answering({ 'http://b': figuresOf('b'), 'http://c': figuresOf('c') })
  t.match(await clusterStats(own, ask), {
    nodes: [{ node: 'a' }, { node: 'b' }],
    unreachable: [{ id: 'c', error: 'no gossip from it for 9 s' }],
  })
})
