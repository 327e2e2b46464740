import { seededRandom } from '@rouse/testkit'
import { test } from 'tap'
import { TokenClock } from '../../src/wire/token-clock.ts'

const monthMs = 30 * 24 * 3_600_000

test('a token encodes when it was issued', async (t) => {
  const clock = new TokenClock(() => 0.5, 1_000)
  const token = clock.issue(5_000)
  t.equal(clock.issuedAt(token, 9_000), 5_000)
  t.equal(clock.issuedAt(token + 1, 9_000), undefined, 'not issued yet')
  t.equal(clock.issuedAt(0, 9_000), undefined, 'none')
})

test('no token is issued twice, and tokens of hellos are distinct', async (t) => {
  const clock = new TokenClock(() => 0.7, 0)
  const tokens = Array.from({ length: 100 }, (_, index) => {
    return index % 3 === 0 ? clock.issueForHello(5) : clock.issue(5)
  })
  t.equal(new Set(tokens).size, tokens.length)
  t.ok(tokens.every((token, index) => clock.isForHello(token) === (index % 3 === 0)))
})

test('a token may arrive after a later one, but not long after', async (t) => {
  const clock = new TokenClock(() => 0.5, 0)
  const [first, second, third] = [clock.issue(1_000), clock.issue(5_000), clock.issue(60_000)]
  t.ok(clock.isOwn(first, second))
  t.ok(clock.isOwn(third, second))
  t.notOk(clock.isOwn(first, third))
})

test('tokens of other nodes and of an earlier process are not mistaken for ours', async (t) => {
  const random = seededRandom(1)
  const lives = Array.from({ length: 100 }, (_, index) => {
    const clock = new TokenClock(() => random.next(), index)
    return { clock, tokens: [clock.issue(index), clock.issue(monthMs / 2), clock.issue(monthMs)] }
  })
  for (const { clock, tokens } of lives) {
    const known = lives.flatMap((life) => life.tokens).filter((one) => clock.isOwn(one, 0))
    t.same(known, tokens)
  }
  t.ok(lives.every(({ tokens }) => tokens.every((token) => Number.isSafeInteger(token))))
})
