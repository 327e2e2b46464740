// The verdict of `npm run growth`, tested with invented results.
import { test } from 'tap'
import { type Figures, judge, type Run, sentence } from './run/judge.ts'

const table = { tableMb: 10, indexMb: 5, live: 30_000, dead: 5_000 }
const steady: Figures = {
  messagesPerSecond: 300,
  nodeUs: 500,
  postgresUs: 300,
  pushP50Ms: 3,
  pushP99Ms: 12,
  deliveryP50Ms: 6,
  deliveryP99Ms: 30,
  memoryMb: { 'node-1 primary': 90, 'node-1 worker 1': 120, PostgreSQL: 350 },
  tables: { messages: table, lanes: { ...table, live: 200 } },
  lagSeconds: { messages: 4, keys: 9 },
  pending: 60,
}
const quiet: Run = {
  minutes: 20,
  rate: 300,
  nodes: 2,
  failedRequests: 0,
  start: steady,
  end: steady,
}

function endingWith(end: Partial<Figures>): Run {
  return { ...quiet, end: { ...steady, ...end } }
}

test('a run with equal start and end shows no growth', async (t) => {
  t.same(judge(quiet), [])
  t.match(
    sentence(quiet),
    /^20 minutes at 300 messages a second on 2 nodes: no growth; CPU per message 500 to 500 µs of nodes.* largest process of a node 120 to 120 MB, PostgreSQL 350 to 350 MB/,
  )
})

test('a result within its limit is not growth', async (t) => {
  t.same(
    judge(
      endingWith({
        nodeUs: 600,
        postgresUs: 360,
        pushP50Ms: 9.5,
        pushP99Ms: 500,
        deliveryP99Ms: 900,
      }),
    ),
    [],
  )
  t.same(judge(endingWith({ memoryMb: { 'node-1 primary': 137, 'node-1 worker 1': 176 } })), [])
  t.same(
    judge(
      endingWith({
        tables: { messages: { ...table, tableMb: 45 } },
        lagSeconds: { messages: 60 },
        pending: 3_000,
      }),
    ),
    [],
  )
})

const grown: readonly (readonly [Run, RegExp])[] = [
  [endingWith({ nodeUs: 601 }), /^CPU of nodes per message: 601 µs, at most 600$/],
  [endingWith({ postgresUs: 361 }), /^CPU of PostgreSQL per message: 361 µs, at most 360$/],
  [endingWith({ pushP50Ms: 10 }), /^median of a push: 10.0 ms, at most 9.5$/],
  [endingWith({ deliveryP50Ms: 15 }), /^median of a delivery/],
  [
    endingWith({ memoryMb: { 'node-1 primary': 90, 'node-1 worker 1': 177 } }),
    /^memory of node-1 worker 1: 177 MB, at most 176$/,
  ],
  [endingWith({ memoryMb: { 'node-1 worker 2': 90 } }), /^memory of node-1 worker 2/],
  [
    endingWith({ tables: { messages: { ...table, tableMb: 57 } } }),
    /^all tables and indexes: 62.0 MB, at most 61.0$/,
  ],
  [
    endingWith({ tables: { lanes: { ...table, dead: 144_001 } } }),
    /^dead rows of lanes: 144001 rows, at most 144000$/,
  ],
  [
    endingWith({ lagSeconds: { messages: 4, keys: 61 } }),
    /^retention of keys is behind: 61.0 s, at most 60.0$/,
  ],
  [endingWith({ pending: 3_001 }), /^messages not completed/],
  [endingWith({ messagesPerSecond: 284 }), /^only 284 of 300 messages a second went through/],
  [{ ...quiet, failedRequests: 1 }, /^1 requests failed$/],
  [endingWith({ nodeUs: Number.NaN }), /^CPU of nodes per message: NaN/],
]

test('each result beyond its limit is a separate reason', async (t) => {
  for (const [run, reason] of grown) {
    const reasons = judge(run)
    t.equal(reasons.length, 1, String(reason))
    t.match(reasons[0], reason)
    t.match(sentence(run), /: growth; /)
  }
})
