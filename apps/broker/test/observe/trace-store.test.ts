import { test } from 'tap'
import { NodeEvents } from '../../src/observe/events/node-events.ts'
import { joinDeliveries, joinHolds, openLeaseIds } from '../../src/observe/why/join-acks.ts'
import { Spans } from '../../src/observe/why/spans.ts'
import type { AckRecord, LeaseRecord, TraceRecord } from '../../src/observe/why/trace-record.ts'
import { TraceStore } from '../../src/observe/why/trace-store.ts'

function pushRecord(id: string, node = 'a'): TraceRecord {
  return { kind: 'push', id, node, worker: 1, ms: 1 }
}

const place = { queue: 'q', partitionId: '7', fromMs: 0 }

test('the store keeps the newest records, limited in number and in bytes', (t) => {
  const store = new TraceStore()
  store.add(Array.from({ length: 25_000 }, (_, i) => pushRecord(`m${i}`)))
  t.equal(store.size, 20_000)
  t.same(store.find({ id: 'm4999', ...place }), [])
  t.equal(store.find({ id: 'm24999', ...place }).length, 1)
  store.add(Array.from({ length: 2_000 }, (_, i) => pushRecord(`l${i}`, 'n'.repeat(10_000))))
  t.ok(store.bytes <= 8 * 1024 * 1024)
  t.ok(store.size < 1_000)
  t.equal(store.find({ id: 'l1999', ...place }).length, 1)
  t.end()
})

const lease: LeaseRecord = {
  kind: 'lease',
  node: 'a',
  worker: 1,
  group: 'g',
  attempt: 1,
  holder: 'w',
  leaseId: 'l1',
  partitionId: '7',
  id: 'x',
  seq: 1,
  lastSeq: 1,
  expiresAtMs: 60_000,
  source: 'udp',
  hintMs: 1,
  popMs: 1,
  waitedMs: 1,
  answeredMs: 1,
  poppedAtMs: 1,
  poppedWallMs: 1,
  endedMs: 4,
  isEnded: true,
  status: 'completed',
}

const ack: AckRecord = {
  kind: 'ack',
  leaseId: 'l1',
  message: { partitionId: '7', seq: 1 },
  status: 'completed',
  node: 'b',
  worker: 2,
  wallMs: 0,
  atMs: 500,
}

test('a record that comes again replaces itself, and leases are found by partition and time', (t) => {
  const store = new TraceStore()
  store.add([pushRecord('m'), pushRecord('m', 'b')])
  t.match(store.find({ id: 'm', ...place }), [{ node: 'b' }])
  store.add([lease, { ...lease, leaseId: 'l2', poppedAtMs: 10 }])
  const found = store.find({ id: 'y', ...place, fromMs: 8 })
  t.match(found, [{ poppedAtMs: 10 }])
  t.equal(found.length, 1)
  t.end()
})

test('acks of other workers are found with their lease, and never push out chosen records', (t) => {
  const store = new TraceStore()
  store.add([pushRecord('m'), { ...lease, endedMs: null, isEnded: false }])
  const others = Array.from({ length: 30_000 }, (_, i) => ({ ...ack, leaseId: `other ${i}` }))
  store.add([...others, ack])
  t.match(store.find({ id: 'm', ...place }), [{ kind: 'push' }, { kind: 'lease' }, { kind: 'ack' }])
  t.match(store.find({ id: 'none', ...place, partitionId: null, leaseIds: ['l1'] }), [
    { node: 'b' },
  ])
  t.same(store.find({ id: 'none', ...place, partitionId: null, leaseIds: ['other 1'] }), [])
  t.ok(store.bytes < 12 * 1024 * 1024)
  t.end()
})

test('the ack of another node is joined by the clock of the database, that of a worker by the node', (t) => {
  const open = { ...lease, endedMs: null, isEnded: false, poppedAtMs: 100, poppedWallMs: 7_000 }
  const message = { id: 'x', seq: 1, enteredAtMs: 90 }
  const of = (records: TraceRecord[]) => joinDeliveries(records, message)
  t.match(of([open]), [{ ackedMs: null, ackedBy: null }])
  t.match(of([open, ack]), [{ ackedMs: 400, ackedBy: { node: 'b', worker: 2 } }])
  const near = { ...ack, node: 'a', wallMs: 7_030, atMs: 3 }
  t.match(of([open, near]), [{ ackedMs: 30, ackedBy: { node: 'a', worker: 2 } }])
  t.match(joinHolds([open, ack], 2), [{ heldUntilMs: 500, isEnded: true }])
  t.match(joinHolds([open], 2), [{ heldUntilMs: 100, isEnded: false }])
  t.same(openLeaseIds([open]), ['l1'])
  t.same(openLeaseIds([open, ack]), [])
  t.end()
})

test('spans divide a time without gaps and overlaps; the first claim wins', (t) => {
  const spans = new Spans<string>(0, 100)
  spans.claim(20, 40, 'a')
  spans.claim(30, 60, 'b')
  spans.claim(-10, 5, 'c')
  t.equal(spans.freeMs(0, 100), 55)
  spans.claimRest('rest')
  t.same(
    spans.all().map(({ fromMs, toMs, cause }) => [fromMs, toMs, cause]),
    [
      [0, 5, 'c'],
      [5, 20, 'rest'],
      [20, 40, 'a'],
      [40, 60, 'b'],
      [60, 100, 'rest'],
    ],
  )
  t.end()
})

test('a node keeps its last events, and says when earlier ones are gone', (t) => {
  let nowMs = 1_600_000_000_000
  const sent: unknown[] = []
  const post = (_: number, message: unknown) => sent.push(message)
  const events = new NodeEvents({ node: 'a', wallMs: () => nowMs, nowMs: () => nowMs, post })
  const startedAtMs = nowMs
  for (let i = 0; i < 2_001; i += 1) {
    nowMs += 10_000
    events.queueChanged('q', 'paused', 'me')
  }
  t.same(sent, [], 'without a stream no message is sent')
  const past = (sinceMs: number) => {
    events.received(1, { type: 'askEvents', id: 1, sinceMs })
    return sent.pop() as { past: { events: unknown[]; missing: string | null } }
  }
  t.equal(past(nowMs).past.missing, null)
  t.equal(past(nowMs - 25_000).past.events.length, 4, 'also those of five seconds before')
  t.equal(past(startedAtMs + 1).past.missing, 'too_old')
  t.equal(past(startedAtMs - 1).past.missing, 'restarted')
  t.equal(events.wakes, undefined, 'without a stream wake-ups are not measured')
  events.received(1, { type: 'watchEvents', events: true, wakes: true })
  for (let i = 0; i < 60; i += 1) events.wakes?.report('grant', 'q', {})
  t.equal(sent.length, 50, 'a sample')
  nowMs += 1_000
  events.wakes?.report('grant', 'q', {})
  t.match(sent.at(-1), { events: [{ json: /"skipped":10/ }] })
  events.workerGone(1)
  t.equal(events.wakes, undefined)
  t.end()
})
