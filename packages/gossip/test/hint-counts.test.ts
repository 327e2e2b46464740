// What a sender says it sent, and what a receiver makes of it.
import { seededRandom } from '@rouse/testkit'
import { test } from 'tap'
import { HintInbox } from '../src/hint-inbox.ts'
import { HintOutbox } from '../src/hint-outbox.ts'
import { PeerInterest } from '../src/peer-interest.ts'

test('hints of any size that all come raise no alarm', async (t) => {
  const random = seededRandom(1)
  const outbox = new HintOutbox<ReturnType<typeof makePeer>>({ hintHoldMs: 1, rideAfterMs: 2 })
  const peer = makePeer()
  const inbox = new HintInbox()
  let now = 0
  for (let round = 0; round < 20_000; round += 1) {
    now += random.next()
    const count = 1 + random.below(12)
    for (let index = 0; index < count; index += 1) {
      const part = 'p'.repeat(20 + random.below(60))
      const scope = `queue-${random.below(1_000_000)}`
      outbox.add({ kind: 'MESSAGE_AVAILABLE', scope, part, count: 1 }, now)
    }
    if (outbox.nextAt <= now) {
      const parcels = outbox.take(now, [peer], true)
      for (const { number } of parcels.flatMap(({ batches }) => batches)) inbox.accept(number)
    }
    if (round % 10 > 0) continue
    const lost = inbox.compare(outbox.countFor(peer))
    if (lost > 0) t.fail(`${lost} of round ${round}`)
  }
  t.equal(inbox.lost, 0)
})

test('a batch that comes late does not hide another that is lost', async (t) => {
  const inbox = new HintInbox()
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 3, batchesSent: 0 }), 0)
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 7, batchesSent: 1 }), 1, '4 is under way')
  t.ok(inbox.accept(4))
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 11, batchesSent: 2 }), 1, '8 is lost')
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 11, batchesSent: 2 }), 0, 'once')
})

test('a sender that counts anew had given us up: that is one look', async (t) => {
  const inbox = new HintInbox()
  inbox.compare({ countedFrom: 3, settledBatch: 3, batchesSent: 0 })
  t.equal(inbox.compare({ countedFrom: 15, settledBatch: 15, batchesSent: 0 }), 1)
  inbox.accept(16)
  t.equal(inbox.compare({ countedFrom: 15, settledBatch: 19, batchesSent: 1 }), 0)
  for (const number of [40, 44]) inbox.accept(number)
  // It gave us up after 19, and what it said first when we were back is lost.
  const anew = { countedFrom: 39, settledBatch: 47, batchesSent: 2 }
  t.equal(inbox.compare(anew), 1)
  t.ok(inbox.accept(20), 'under way since before')
  t.equal(inbox.compare(anew), 0)
  t.equal(inbox.compare({ ...anew, settledBatch: 51, batchesSent: 3 }), 1)
})

test('a sender that knew us longer than we know it may have told us much: that is one look', async (t) => {
  const inbox = new HintInbox()
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 4_003, batchesSent: 700 }), 1)
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 4_007, batchesSent: 700 }), 0)
  t.equal(inbox.compare({ countedFrom: 3, settledBatch: 4_011, batchesSent: 702 }), 2)
})

function makePeer() {
  return { interest: new PeerInterest(), hintsSent: 0, batchesSent: 0, countedFrom: 0 }
}
