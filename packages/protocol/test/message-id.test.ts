import fc from 'fast-check'
import { test } from 'tap'
import {
  createUuidV7,
  isSampled,
  isSampledPlace,
  isUuid,
  messageIdAt,
  placeOfMessageId,
  timeOfMessageId,
  withoutPlace,
  withPlace,
} from '../src/index.ts'

const nowMs = Date.parse('2030-01-01T00:00:00Z')
const newUuid = createUuidV7({ now: () => nowMs, fillRandom: (bytes) => bytes.fill(0xff) })
const seq = fc.integer({ min: 1, max: 2 ** 40 - 1 })
const partitionId = fc.bigInt({ min: 1n, max: 2n ** 28n - 1n }).map(String)

test('the id of a message names its place and the time of its push', async (t) => {
  fc.assert(
    fc.property(partitionId, seq, (partition, one) => {
      const id = messageIdAt(withPlace(newUuid()), partition, one)
      const place = placeOfMessageId(id)
      return (
        isUuid(id) &&
        id[14] === '7' &&
        /[89ab]/.test(id.charAt(19)) &&
        place?.partitionId === partition &&
        place.seq === one &&
        timeOfMessageId(id) !== undefined
      )
    }),
  )
  t.equal(timeOfMessageId(messageIdAt(withPlace(newUuid()), '7', 42)), nowMs)
})

test('places at the limits have ids of their own', async (t) => {
  const places: readonly [string, number][] = [
    ['1', 1],
    ['1', 2],
    ['2', 1],
    [String(2 ** 31), 2 ** 31],
    [String(2n ** 62n), 1],
    [String(2n ** 15n - 1n), Number.MAX_SAFE_INTEGER],
    [String(2 ** 26), 2 ** 26 - 1],
    [String(2 ** 27), 2 ** 26 - 1],
  ]
  const stored = withPlace(newUuid())
  const ids = places.map(([partition, one]) => messageIdAt(stored, partition, one))
  t.equal(new Set(ids).size, places.length)
  t.same(
    ids.map(placeOfMessageId),
    places.map(([partition, one]) => ({ partitionId: partition, seq: one })),
  )
})

test('an id without room for its place is kept', async (t) => {
  const uuid = newUuid()
  t.equal(messageIdAt(withPlace(uuid), String(2n ** 62n), 2 ** 40), uuid)
})

test('only an id that is to name its place is changed', async (t) => {
  const uuid = newUuid()
  const other = '5b1d7c1e-8a34-4f0e-9d52-6a1f0c9d2e10'
  for (const id of [uuid, other]) {
    t.equal(messageIdAt(id, '7', 42), id)
    t.equal(withoutPlace(id), id)
  }
  t.equal(withoutPlace(withPlace(uuid)), uuid)
})

test('a text that names no place is recognised', async (t) => {
  for (const id of ['', 'x', '5b1d7c1e-8a34-4f0e-9d52-6a1f0c9d2e10', withPlace(newUuid())]) {
    t.equal(placeOfMessageId(id), undefined, id)
  }
  t.equal(timeOfMessageId('5b1d7c1e-8a34-4f0e-9d52-6a1f0c9d2e10'), undefined)
})

test('the id decides whether a message is in the sample, and its place decides the same', (t) => {
  const stored = '0198f1c2-7a3b-8a54-9c1e-0123456789ab'
  let count = 0
  for (let partition = 1; partition <= 2_000; partition += 1) {
    for (const seq of [1, 2, 7, 16, 1_000 + partition, 2 ** 24 + partition, 2 ** 40 + partition]) {
      const place = String(BigInt(partition) * 9_973n)
      const isChosen = isSampled(messageIdAt(stored, place, seq))
      if (isChosen !== isSampledPlace(place, seq)) t.fail(`${place} ${seq}`)
      if (isChosen) count += 1
    }
  }
  const share = (count / 14_000) * 16
  t.ok(share > 0.8 && share < 1.2, `one of ${16 / share}`)
  t.end()
})
