// The counts that a sender reports, and how a receiver detects losses from them.
import { seededRandom } from '@rouse/testkit'
import { test } from 'tap'
import { type BatchCount, HintInbox } from '../../src/hints/hint-inbox.ts'
import { HintOutbox } from '../../src/hints/hint-outbox.ts'
import { OwnInterest } from '../../src/interest/own-interest.ts'
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

for (const loss of [0, 0.3]) {
  test(`with ${loss * 100} % loss and settled hints, exactly the lost batches are reported`, async (t) => {
    const random = seededRandom(2)
    const outbox = new HintOutbox<ReturnType<typeof makePeer>>({
      hintHoldMs: 1,
      rideAfterMs: 2,
      askMs: 8,
    })
    const links = ['g', 'g', 'h', 'g'].map((group, index) => {
      const peer = { ...makePeer(), countedFrom: outbox.lastBatch }
      const own = new OwnInterest(10_000)
      own.set({ version: 1, entries: index === 3 ? bothGroups : [{ scope: 'q/a', group }] }, 0)
      own.refresh(0)
      peer.interest.receive(own.message)
      return { peer, inbox: new HintInbox(), sent: new Set<number>(), arrived: new Set<number>() }
    })
    const peers = links.map(({ peer }) => peer)
    const settles: { readonly at: number; readonly settle: () => boolean }[] = []
    let now = 0
    const round = () => {
      now += random.next() * 4
      for (const one of settles.splice(0)) {
        if (one.at > now) settles.push(one)
        else one.settle()
      }
      if (outbox.nextAt > now) return
      for (const { to, batches } of outbox.take(now, peers)) {
        for (const link of links.filter(({ peer }) => to.includes(peer))) {
          for (const { number } of batches) link.sent.add(number)
          if (random.next() < loss) continue
          for (const { number, hints } of batches) {
            link.arrived.add(number)
            if (!link.inbox.accept(number)) continue
            for (const { ask } of hints) {
              if (ask === undefined || random.next() < 0.3) continue
              const settle = () => outbox.settled(link.peer, number, ask)
              settles.push({ at: now + random.next() * 10, settle })
            }
          }
        }
      }
      for (const { peer, inbox } of links) inbox.compare(outbox.countFor(peer))
    }
    for (let push = 0; push < 20_000; push += 1) {
      const spread = random.pick(['one', 'one', 'all'] as const)
      const served = new Set(random.below(4) === 0 ? ['g'] : [])
      const scope = `orders-${random.below(3)}`
      const hint = { kind: 'MESSAGE_AVAILABLE', scope, count: 1, keys: ['q/a'] } as const
      outbox.add({ ...hint, spread, served }, peers, now)
      round()
    }
    for (let rest = 0; rest < 100; rest += 1) round()
    t.equal(outbox.nextAt, Number.POSITIVE_INFINITY, 'nothing is left to send')
    for (const { sent, arrived, inbox, peer } of links) {
      t.equal(peer.batchesSent, sent.size)
      const confirmed = peer.batchesSent - peer.batchesUnconfirmed
      t.ok(confirmed > 50, `${confirmed} batches were reported`)
      t.equal(inbox.lost, sent.size - arrived.size, `${inbox.lost} of ${sent.size}`)
      t.equal(inbox.lost > 0, loss > 0)
    }
  })
}

const bothGroups = [
  { scope: 'q/a', group: 'g' },
  { scope: 'q/a', group: 'h' },
]

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
