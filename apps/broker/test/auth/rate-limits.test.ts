import { test } from 'tap'
import { RateLimits } from '../../src/auth/rate-limits.ts'

function limitsAt() {
  const time = { ms: 1_000 }
  const limits = new RateLimits({ nowMs: () => time.ms, wallMs: () => time.ms })
  return { limits, time }
}

/** How many of these requests are admitted. */
function admitted(limits: RateLimits, count: number, limit: object, bytes = 0): number {
  let done = 0
  for (let i = 0; i < count; i += 1) {
    try {
      limits.admit('k', limit, bytes)
      done += 1
    } catch {}
  }
  return done
}

test('a key gets what accrues in a second at once, and then its rate', async (t) => {
  const { limits, time } = limitsAt()
  const ten = { requestsPerSecond: 10 }
  t.equal(admitted(limits, 100, ten), 10)
  t.throws(() => limits.admit('k', ten, 0), { code: 'rate_limited', retryAfterSeconds: 1 })
  time.ms += 500
  t.equal(admitted(limits, 100, ten), 5)
  time.ms += 60_000
  t.equal(admitted(limits, 100, ten), 10, 'a long pause saves up no more than a second')
  t.doesNotThrow(() => limits.admit('other', ten, 0), 'keys do not share')
})

test('every node takes its share', async (t) => {
  const { limits, time } = limitsAt()
  limits.nodes = 4
  t.equal(admitted(limits, 100, { requestsPerSecond: 40 }), 10)
  time.ms += 1_000
  limits.nodes = 1
  t.equal(admitted(limits, 100, { requestsPerSecond: 40 }), 40)
  const { limits: small, time: smallTime } = limitsAt()
  small.nodes = 3
  t.equal(admitted(small, 5, { requestsPerSecond: 1 }), 1, 'a small limit is not zero')
  t.throws(() => small.admit('k', { requestsPerSecond: 1 }, 0), {
    code: 'rate_limited',
    retryAfterSeconds: 3,
  })
  smallTime.ms += 3_000
  t.equal(admitted(small, 5, { requestsPerSecond: 1 }), 1)
})

test('bytes are counted after the fact, and paid back', async (t) => {
  const { limits, time } = limitsAt()
  const limit = { bytesPerSecond: 1_000 }
  limits.admit('k', limit, 3_000)
  t.throws(() => limits.admit('k', limit, 1), { code: 'rate_limited', retryAfterSeconds: 2 })
  time.ms += 2_001
  limits.admit('k', limit, 0)
  limits.charge('k', 1_000_000)
  t.throws(
    () => limits.admit('k', limit, 1),
    { code: 'rate_limited', retryAfterSeconds: 60 },
    'within a minute',
  )
  time.ms += 60_001
  limits.admit('k', limit, 0)
})

test('the workers of a node share, and one that died counts no more', async (t) => {
  const { limits, time } = limitsAt()
  const { limits: other } = limitsAt()
  const limit = { requestsPerSecond: 10, bytesPerSecond: 1_000_000, waitingPops: 2 }
  t.equal(admitted(other, 8, limit, 5), 8)
  other.openPop('k', limit)
  t.same(other.takeUse(false), [{ keyId: 'k', requests: 8, bytes: 40, openPops: 1 }])
  t.same(other.takeUse(false), [], 'only once')
  t.same(other.takeUse(true), [{ keyId: 'k', requests: 0, bytes: 0, openPops: 1 }])
  limits.admit('k', limit, 0)
  limits.applyUse(2, [{ keyId: 'k', requests: 8, bytes: 40, openPops: 1 }])
  t.equal(admitted(limits, 10, limit), 1)
  limits.openPop('k', limit)
  t.throws(() => limits.openPop('k', limit), { code: 'rate_limited' })
  limits.applyUse(2, [{ keyId: 'k', requests: 0, bytes: 0, openPops: 0 }])
  limits.openPop('k', limit)
  limits.popClosed('k')
  limits.applyUse(2, [{ keyId: 'k', requests: 0, bytes: 0, openPops: 1 }])
  t.throws(() => limits.openPop('k', limit))
  time.ms += 3_001
  limits.openPop('k', limit)
})

test('a limit that was raised, lowered or removed applies to the next request', async (t) => {
  const { limits, time } = limitsAt()
  t.equal(admitted(limits, 5, { requestsPerSecond: 2 }), 2)
  t.equal(admitted(limits, 1_000, {}), 1_000)
  t.equal(admitted(limits, 5, { requestsPerSecond: 2 }), 2)
  time.ms += 1_000
  t.equal(admitted(limits, 500, { requestsPerSecond: 100 }), 100)
  limits.keep(new Set())
  t.equal(admitted(limits, 500, { requestsPerSecond: 100 }), 100, 'forgotten')
})
