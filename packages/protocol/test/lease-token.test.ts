import fc from 'fast-check'
import { test } from 'tap'
import {
  decodeLeaseToken,
  encodeLeaseToken,
  isLeaseUuid,
  isPartitionId,
  leaseUuidOf,
  matchesTransaction,
  seqOfTransactionId,
  transactionIdFor,
} from '../src/index.ts'

const message = fc.record({
  leaseId: fc.uuid(),
  partitionId: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String),
  seq: fc.maxSafeNat(),
  transactionId: fc.string({ unit: 'grapheme', minLength: 1 }),
})

test('a token decodes to what it was made from', async () => {
  fc.assert(
    fc.property(message, (one) => {
      const token = decodeLeaseToken(encodeLeaseToken(one))
      return (
        token !== undefined &&
        token.leaseId === one.leaseId &&
        token.partitionId === one.partitionId &&
        token.seq === one.seq &&
        matchesTransaction(token, one.transactionId)
      )
    }),
  )
})

test('a token is 48 characters that need no escaping in a path', async () => {
  fc.assert(fc.property(message, (one) => /^[A-Za-z0-9_-]{48}$/.test(encodeLeaseToken(one))))
})

test('two messages never share a token', async () => {
  fc.assert(
    fc.property(message, message, (one, other) => {
      const same = one.leaseId === other.leaseId && one.partitionId === other.partitionId
      return (same && one.seq === other.seq) || encodeLeaseToken(one) !== encodeLeaseToken(other)
    }),
  )
})

test('every text that decodes has exactly one spelling', async () => {
  const words = fc.stringMatching(/^[A-Za-z0-9_-]{48}$/)
  fc.assert(
    fc.property(words, (text) => {
      const token = decodeLeaseToken(text)
      if (token === undefined) return true
      const again = encodeLeaseToken({ ...token, transactionId: '' })
      return again.slice(0, 42) === text.slice(0, 42)
    }),
  )
})

test('an id of another format is not a token', async (t) => {
  const token = encodeLeaseToken({
    leaseId: '0198c0de-1234-4abc-8def-0123456789ab',
    partitionId: '7',
    seq: 42,
    transactionId: '7-42',
  })
  t.equal(token, 'AZjA3hI0SryN7wEjRWeJqwAAAAAAAAAHAAAAAAAAACp8ifyB')
  const foreign = [
    '',
    'lease-1',
    '0198c0de-1234-4abc-8def-0123456789ab',
    token.slice(1),
    `${token}A`,
  ]
  for (const text of [
    ...foreign,
    `${token}=`,
    `+${token.slice(1)}`,
    ` ${token.slice(1)}`,
    '-'.repeat(48),
  ]) {
    t.equal(decodeLeaseToken(text), undefined, text)
  }
  for (const value of [undefined, null, 5, {}]) t.equal(decodeLeaseToken(value), undefined)
  fc.assert(fc.property(fc.string(), (text) => decodeLeaseToken(text) === undefined))
})

test('another transaction id does not match', async (t) => {
  const one = { leaseId: '0198c0de-1234-4abc-8def-0123456789ab', partitionId: '7', seq: 42 }
  const token = decodeLeaseToken(encodeLeaseToken({ ...one, transactionId: 'order-1' }))
  t.ok(token)
  if (token === undefined) return
  t.ok(matchesTransaction(token, 'order-1'))
  for (const other of ['order-2', 'order-1 ', 'Order-1', '', 'ordeŲ-1']) {
    t.notOk(matchesTransaction(token, other))
  }
})

test('a lease id that is not a UUID throws', async (t) => {
  const wrong = { leaseId: 'x', partitionId: '1', seq: 1, transactionId: 'a' }
  t.throws(() => encodeLeaseToken(wrong), TypeError)
})

test('a message without a transaction id is named after its partition and seq', async (t) => {
  t.equal(transactionIdFor('7', 42), '7-42')
})

test('a leaseId and a receipt name the same lease', async (t) => {
  fc.assert(
    fc.property(message, (one) => {
      const receipt = encodeLeaseToken(one)
      return (
        leaseUuidOf(receipt) === one.leaseId &&
        leaseUuidOf(one.leaseId) === one.leaseId &&
        isLeaseUuid(one.leaseId) &&
        !isLeaseUuid(receipt)
      )
    }),
  )
  for (const text of ['', 'foreign', 5, null, undefined, '0198c0de12344abc8def0123456789ab']) {
    t.equal(leaseUuidOf(text), undefined, String(text))
  }
})

test('a derived transactionId leads back to its seq, and no other text does', async (t) => {
  const seq = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
  fc.assert(
    fc.property(message, seq, ({ partitionId }, one) => {
      return seqOfTransactionId(partitionId, transactionIdFor(partitionId, one)) === one
    }),
  )
  for (const text of [
    '7',
    '7-',
    '7-0',
    '7-01',
    '7--1',
    '7-1.5',
    '7-1e3',
    '7-1 ',
    '77-1',
    '-1',
    '7-x',
  ]) {
    t.equal(seqOfTransactionId('7', text), undefined, text)
  }
  t.equal(seqOfTransactionId('7', `7-${2 ** 53}`), undefined, 'not a safe integer')
})

test('a partition id is a positive 64-bit integer without leading zeros', async (t) => {
  for (const text of ['1', '42', '9223372036854775807']) t.ok(isPartitionId(text), text)
  for (const text of ['', '0', '01', '-1', '1.5', '1e3', ' 1', 'x', '9223372036854775808']) {
    t.notOk(isPartitionId(text), text)
  }
})
