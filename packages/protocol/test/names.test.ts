import fc from 'fast-check'
import { test } from 'tap'
import {
  parseConsumerGroup,
  parseNamespace,
  parsePartitionName,
  parseQueueName,
  parseTask,
  parseTransactionId,
  RouseError,
} from '../src/index.ts'

const parsers = [
  parseQueueName,
  parsePartitionName,
  parseConsumerGroup,
  parseNamespace,
  parseTask,
  parseTransactionId,
]

function isRefused(value: unknown): boolean {
  try {
    parseQueueName(value)
    return false
  } catch (error) {
    if (error instanceof RouseError && error.code === 'invalid_name') return true
    throw error
  }
}

test('ordinary and unusual names pass unchanged', async (t) => {
  const names = ['orders', 'a/b', '*', '%2F', ' ', '...', 'Größe', '注文', '💶', '__QUEUE_MODE__']
  for (const parse of parsers) for (const name of names) t.equal(parse(name), name)
})

test('a name may have 255 bytes but not 256, in any script', async (t) => {
  for (const [character, bytes] of Object.entries({ a: 1, é: 2, 注: 3, '💶': 4 })) {
    const fits = character.repeat(Math.floor(255 / bytes)) + 'x'.repeat(255 % bytes)
    t.equal(Buffer.byteLength(fits), 255)
    t.equal(parseQueueName(fits), fits)
    t.ok(isRefused(`${fits}x`))
  }
})

test('an invalid name is refused with its field', async (t) => {
  for (const value of ['', '.', '..', 'a\nb', '\u0000', '\u007f', '\u0085', '\u009f']) {
    t.ok(isRefused(value), JSON.stringify(value))
  }
  for (const value of [null, 7, {}, ['a']]) t.ok(isRefused(value))
  t.throws(() => parsePartitionName('', 'items[3].partition'), {
    code: 'invalid_name',
    errors: [{ field: 'items[3].partition', message: 'must not be empty' }],
  })
})

test('lone surrogates are refused in any position', async (t) => {
  for (const value of ['\ud83d', '\udcb6', 'a\ud83d', '\ud83da', '\udcb6\ud83d', '💶\udcb6']) {
    t.ok(isRefused(value), JSON.stringify(value))
  }
})

test('the rule holds for arbitrary text', async () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      const bytes = Buffer.byteLength(text)
      // Buffer replaces lone surrogates, so only well-formed text survives the round trip.
      const isWellFormed = Buffer.from(text).toString() === text
      const isName =
        isWellFormed &&
        bytes >= 1 &&
        bytes <= 255 &&
        text !== '.' &&
        text !== '..' &&
        !/\p{Cc}/u.test(text)
      return isRefused(text) === !isName
    }),
    { numRuns: 2_000 },
  )
})

test('a name that is missing is reported as missing', async (t) => {
  t.throws(() => parseQueueName(undefined), {
    code: 'invalid_request',
    message: /queue is missing/,
    errors: [{ field: 'queue', message: 'is missing' }],
  })
})
