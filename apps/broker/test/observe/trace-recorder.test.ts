import type { Delivery } from '@rouse/sidecar'
import type { Lease } from '@rouse/storage'
import { test } from 'tap'
import { TraceRecorder } from '../../src/observe/why/trace-recorder.ts'

/** Nothing is sampled: the last digits of all ids are the same. */
function openRecorder() {
  let ms = 0
  const recorder = new TraceRecorder({
    node: 'a',
    worker: 1,
    nowMs: () => ms,
    wallMs: () => ms,
    slowMs: 1_000,
  })
  return { recorder, wait: (forMs: number) => (ms += forMs) }
}

const delivery: Delivery = {
  databaseTimeMs: 5_000,
  source: 'poll',
  group: 'g',
  hintMs: 0,
  popMs: 1,
  waitedMs: () => 0,
  holder: () => 'w',
  isAutoAcked: () => false,
}

function leaseOf(partitionId: string, seqs: readonly number[], createdAtMs: number): Lease {
  const texts = { transactionId: null, traceId: null, payload: '1', headers: null }
  const messages = seqs.map((seq) => ({ ...texts, seq, id: `${seq} 000001`, createdAtMs }))
  const names = { leaseId: 'l', queue: 'q', partition: 'p', partitionId }
  return { ...names, demand: 0, attempt: 1, expiresAtMs: 60_000, messages } as unknown as Lease
}

const accepted = { accepted: true, deadLettered: false }

test('a backlog, in which every message is late, makes no more records than are reported', async (t) => {
  const { recorder } = openRecorder()
  let read = 0
  const messages = leaseOf(
    '7',
    Array.from({ length: 1_000 }, (_, i) => i + 1),
    0,
  ).messages
  for (const message of messages) {
    const { id } = message
    Object.defineProperty(message, 'id', { get: () => ((read += 1), id) })
  }
  recorder.delivered([{ ...leaseOf('7', [1], 0), messages }], delivery)
  t.equal(recorder.take().length, 200)
  t.ok(read < 300, 'the rest is not even read')
  recorder.delivered([leaseOf('7', [2], 4_999)], delivery)
  t.same(recorder.take(), [], 'neither late nor sampled')
})

test('a lease is forgotten when each of its messages has ended, in every partition', async (t) => {
  const { recorder, wait } = openRecorder()
  // Messages of another partition may be between those of one.
  recorder.delivered([leaseOf('7', [1], 0), leaseOf('8', [1], 0), leaseOf('7', [2], 0)], delivery)
  t.equal(recorder.take().length, 3)
  const end = (partitionId: string, seq: number) => {
    wait(10)
    recorder.acked([{ leaseId: 'l', message: { partitionId, seq } }], [accepted])
    return recorder.take()
  }
  t.match(end('7', 1), [{ kind: 'delivery', id: '1 000001', ackedMs: 10, status: 'completed' }])
  t.match(end('8', 1), [{ kind: 'delivery', ackedMs: 20 }])
  recorder.report('8')
  t.same(recorder.take(), [], 'not open any more')
  recorder.report('7')
  t.match(recorder.take(), [{ kind: 'lease', seq: 1, lastSeq: 2, isEnded: false }])
  t.match(end('7', 2), [{ kind: 'delivery', id: '2 000001', ackedMs: 30 }])
  t.match(end('7', 3), [{ kind: 'ack' }], 'of a lease that this worker does not know')
})

test('a lease that was held for long is recorded with its end', async (t) => {
  const { recorder, wait } = openRecorder()
  recorder.delivered([leaseOf('7', [1, 2], 4_999)], delivery)
  recorder.answered([leaseOf('7', [], 0)])
  wait(400)
  recorder.acked([{ leaseId: 'l', status: 'failed' }], [accepted])
  const ended = { endedMs: 400, isEnded: true, status: 'failed', answeredMs: 0 }
  t.match(recorder.take(), [{ kind: 'lease', id: '1 000001', lastSeq: 2, ...ended }])
})
