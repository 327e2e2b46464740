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
    const lost = inbox.compare(outbox.settledBatch, outbox.settledBatchesSentTo(peer))
    if (lost > 0) t.fail(`${lost} of round ${round}`)
  }
  t.equal(inbox.lost, 0)
})

function makePeer() {
  return { interest: new PeerInterest(), hintsSent: 0, batchesSent: 0 }
}
