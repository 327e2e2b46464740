import { test } from 'tap'
import { createUuidV7 } from '../src/index.ts'

function generator(now: () => number, fill = 0xff) {
  let fills = 0
  const next = createUuidV7({
    now,
    fillRandom: (bytes) => {
      fills += 1
      bytes.fill(fill)
    },
  })
  return { next, fills: () => fills }
}

test('an id is a version 7 UUID of its millisecond', async (t) => {
  const { next } = generator(() => 0x0198c0de1234)
  t.match(next(), /^0198c0de-1234-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('ids increase within a millisecond, past the counter, and when the clock goes back', async (t) => {
  let nowMs = 1_000_000
  const { next } = generator(() => nowMs)
  let last = next()
  for (let i = 0; i < 20_000; i += 1) {
    if (i % 5_000 === 0) nowMs -= 10
    if (i % 7_000 === 0) nowMs += 25
    const id = next()
    if (id <= last) t.fail(`${id} came after ${last}`)
    last = id
  }
  t.ok(last)
})

test('the counter starts in its lower half', async (t) => {
  const { next } = generator(() => 1_000)
  t.equal(next().slice(14, 18), '77ff')
  t.equal(next().slice(14, 18), '7800')
})

test('a clock with fractions still yields valid UUIDs', async (t) => {
  const { next } = generator(() => 1_000.75)
  t.match(next(), /^[0-9a-f-]{36}$/)
})

test('randomness is fetched for many ids at once', async (t) => {
  const { next, fills } = generator(() => 1_000)
  for (let i = 0; i < 512; i += 1) next()
  t.equal(fills(), 2)
})

test('with real randomness two generators never produce the same id', async (t) => {
  const make = () =>
    createUuidV7({ now: () => 1_000, fillRandom: (bytes) => crypto.getRandomValues(bytes) })
  const [one, other] = [make(), make()]
  const ids = Array.from({ length: 2_000 }, () => [one(), other()]).flat()
  t.equal(new Set(ids).size, ids.length)
})
