// The counts that a sender reports, and how a receiver detects losses from them.
import { seededRandom } from '@rouse/testkit'
import { test } from 'tap'
import { type BatchCount, HintInbox } from '../../src/hints/hint-inbox.ts'
import { HintOutbox } from '../../src/hints/hint-outbox.ts'
import { PeerInterest } from '../../src/interest/peer-interest.ts'

test('hints of any size that all arrive report no loss', async (t) => {
  const random = seededRandom(1)
  const outbox = new HintOutbox<ReturnType<typeof makePeer>>({
    hintHoldMs: 1,
    rideAfterMs: 2,
    askMs: 8,
  })
  const peer = makePeer()
  const inbox = new HintInbox()
  let now = 0
  for (let round = 0; round < 20_000; round += 1) {
    now += random.next()
    const count = 1 + random.below(12)
    for (let index = 0; index < count; index += 1) {
      const part = 'p'.repeat(20 + random.below(60))
      const scope = `queue-${random.below(1_000_000)}`
      outbox.add({ kind: 'MESSAGE_AVAILABLE', scope, part, count: 1 }, [peer], now)
    }
    if (outbox.nextAt <= now) {
      const parcels = outbox.take(now, [peer])
      for (const { number } of parcels.flatMap(({ batches }) => batches)) inbox.accept(number)
    }
    if (round % 10 > 0) continue
    const lost = inbox.compare(outbox.countFor(peer))
    if (lost > 0) t.fail(`${lost} of round ${round}`)
  }
  t.equal(inbox.lost, 0)
})

test('the example in hint-inbox.ts holds', async (t) => {
  const outbox = new HintOutbox<ReturnType<typeof makePeer>>({
    hintHoldMs: 1,
    rideAfterMs: 2,
    askMs: 8,
  })
  const inbox = new HintInbox()
  const [us, others] = [
    { ...makePeer(), countedFrom: outbox.lastBatch },
    { ...makePeer(), countedFrom: outbox.lastBatch },
  ]
  const flush = (now: number, to: typeof us) => {
    outbox.add({ kind: 'MESSAGE_AVAILABLE', scope: 'orders', count: 1 }, [to], now)
    return outbox.take(now, [to]).flatMap(({ batches }) => batches.map((one) => one.number))
  }
  const heard: [BatchCount, number][] = []
  const beat = () => {
    const count = outbox.countFor(us)
    heard.push([count, inbox.compare(count)])
  }
  const ride = (now: number) => outbox.take(now, [])
  t.same(flush(10, us), [4])
  inbox.accept(4)
  ride(12)
  beat()
  t.same(flush(20, others), [8])
  ride(22)
  t.same(flush(30, us), [12])
  beat()
  ride(32)
  beat()
  beat()
  t.same(flush(40, us), [16])
  inbox.accept(16)
  ride(42)
  beat()
  t.same(heard, [
    [{ countedFrom: 3, settledBatch: 7, batchesSent: 1 }, 0],
    [{ countedFrom: 3, settledBatch: 11, batchesSent: 1 }, 0],
    [{ countedFrom: 3, settledBatch: 15, batchesSent: 2 }, 1],
    [{ countedFrom: 3, settledBatch: 15, batchesSent: 2 }, 0],
    [{ countedFrom: 3, settledBatch: 19, batchesSent: 3 }, 0],
  ])
  t.equal(inbox.compare({ countedFrom: 23, settledBatch: 23, batchesSent: 0 }), 1)
})

test('a batch that arrives late does not hide another lost one', async (t) => {
  const inbox = new HintInbox()
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 3, batchesSent: 0 }), 0)
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 7, batchesSent: 1 }), 1, '4 is in flight')
  t.ok(inbox.accept(4))
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 11, batchesSent: 2 }), 1, '8 is lost')
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 11, batchesSent: 2 }), 0, 'once')
})

test('a sender that restarts its count dropped us in between: one loss is reported', async (t) => {
  const inbox = new HintInbox()
  inbox.compare({ countedFrom: 3, settledBatch: 3, batchesSent: 0 })
  t.equal(inbox.compare({ countedFrom: 15, settledBatch: 15, batchesSent: 0 }), 1)
  inbox.accept(16)
  t.equal(inbox.compare({ countedFrom: 15, settledBatch: 19, batchesSent: 1 }), 0)
  for (const number of [40, 44]) inbox.accept(number)
  // The sender dropped us after 19, and the first messages that it sent after our return were lost.
  const restarted = { countedFrom: 39, settledBatch: 47, batchesSent: 2 }
  t.equal(inbox.compare(restarted), 1)
  t.ok(inbox.accept(20), 'sent before the restart')
  t.equal(inbox.compare(restarted), 0)
  t.equal(inbox.compare({ ...restarted, settledBatch: 51, batchesSent: 3 }), 1)
})

test('a sender that knew us before we knew it may have sent hints: one loss is reported', async (t) => {
  const inbox = new HintInbox()
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 4_003, batchesSent: 700 }), 1)
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 4_007, batchesSent: 700 }), 0)
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 4_011, batchesSent: 702 }), 2)
})

function makePeer() {
  return {
    interest: new PeerInterest(),
    state: 'alive' as const,
    rttMs: undefined as number | undefined,
    chosenNumber: 0,
    passedOverUntil: 0,
    hintsSent: 0,
    batchesSent: 0,
    batchesUnconfirmed: 0,
    countedFrom: 0,
  }
}
