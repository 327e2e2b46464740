// When a worker extends a lease again, by what the answer to the last extension said.
import { test } from 'tap'
import { nowMs } from '../../src/clock.ts'
import type { HeldLease } from '../../src/consume/held.ts'
import { LeaseKeeper } from '../../src/consume/lease-keeper.ts'

/** The keeper looks at its leases six times in this time. */
const leaseMs = 3_000

/** Resolves to how a lease with little time left ended, if its extensions get these answers. */
async function keptWith(answers: readonly number[]) {
  let extensions = 0
  const lease: HeldLease = {
    id: 'lease',
    size: 1,
    open: 1,
    sinceMs: nowMs() - leaseMs / 3,
    renewing: false,
    lost: false,
    hasAckIn: false,
  }
  const end = await new Promise<string>((resolve, reject) => {
    const keeper = new LeaseKeeper({
      leaseMs,
      extend: async () => {
        extensions += 1
        if (extensions > answers.length) ended('extended')
        return answers[extensions - 1] ?? leaseMs
      },
      onLost: () => ended('lost'),
      onError: reject,
    })
    const ended = (how: string): void => {
      keeper.stop()
      resolve(how)
    }
    keeper.keep(lease)
    keeper.start()
  })
  return { end, extensions, ageMs: nowMs() - lease.sinceMs }
}

test('a lease that was not extended is lost when the time that is left has passed', async (t) => {
  t.match(await keptWith([1]), { end: 'lost', extensions: 1 })
})

test('a lease that was not extended is extended again while it has time left', async (t) => {
  const { end, extensions } = await keptWith([leaseMs / 2, leaseMs / 2])
  t.same({ end, extensions }, { end: 'extended', extensions: 3 })
})

test('a granted extension is followed by the next one after a third of the time', async (t) => {
  const { end, ageMs } = await keptWith([leaseMs])
  t.equal(end, 'extended')
  t.ok(ageMs >= leaseMs / 3)
})

test('a lease that another call extended for longer is extended as if it lasted one lease time', async (t) => {
  t.match(await keptWith([100 * leaseMs]), { end: 'extended', extensions: 2 })
})

test('a lease that the server no longer knows is lost at once', async (t) => {
  t.match(await keptWith([0]), { end: 'lost', extensions: 1 })
})
