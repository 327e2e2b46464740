import { test } from 'tap'
import { NodeEvents } from '../../src/observe/events/node-events.ts'
import { Spans } from '../../src/observe/why/spans.ts'
import type { TraceRecord } from '../../src/observe/why/trace-record.ts'
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

test('a record that comes again replaces itself, and holds are found by partition and time', (t) => {
  const store = new TraceStore()
  store.add([pushRecord('m'), pushRecord('m', 'b')])
  t.match(store.find({ id: 'm', ...place }), [{ node: 'b' }])
  const hold = { kind: 'hold', partitionId: '7', group: 'g', id: 'x', seq: 1 } as const
  const held = { ...hold, attempt: 1, holder: 'w', status: 'completed' }
  store.add([
    { ...held, fromMs: 1, toMs: 5 },
    { ...held, fromMs: 10, toMs: 20 },
  ])
  const found = store.find({ id: 'y', ...place, fromMs: 8 })
  t.match(found, [{ fromMs: 10 }])
  t.equal(found.length, 1)
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
  const events = new NodeEvents({ node: 'a', wallMs: () => nowMs, post })
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
  for (let i = 0; i < 60; i += 1) events.wakes?.('grant', 'q', {})
  t.equal(sent.length, 50, 'a sample')
  nowMs += 1_000
  events.wakes?.('grant', 'q', {})
  t.match(sent.at(-1), { events: [{ json: /"skipped":10/ }] })
  events.workerGone(1)
  t.equal(events.wakes, undefined)
  t.end()
})
