import { test } from 'tap'
import {
  allFaults,
  fieldError,
  fieldErrorsMax,
  parseQueueName,
  RouseError,
  readEach,
  readFields,
  readPopBody,
  readPopQuery,
} from '../src/index.ts'

const refuse = (field: string) => () => {
  throw fieldError('invalid_name', field, 'is bad')
}

test('valid fields are read, and all invalid ones are reported', (t) => {
  t.same(readFields({ a: () => 1, b: () => undefined }), { a: 1, b: undefined })
  t.throws(() => readFields({ a: refuse('a'), b: () => 1, c: refuse('c') }), {
    code: 'invalid_name',
    detail: 'a is bad',
    errors: [{ field: 'a' }, { field: 'c' }],
  })
  t.end()
})

test('invalid fields in nested objects and lists are reported together', (t) => {
  const list = () => readEach(['', 'good', '..'], (name, i) => parseQueueName(name, `list[${i}]`))
  t.throws(() => readFields({ a: refuse('a'), in: () => readFields({ b: refuse('b') }), list }), {
    errors: [{ field: 'a' }, { field: 'b' }, { field: 'list[0]' }, { field: 'list[2]' }],
  })
  t.same(
    readEach([1, 2], (n, i) => n * 10 + i),
    [10, 21],
  )
  t.end()
})

test('the number of reported fields is limited, and reading stops there', (t) => {
  let reads = 0
  const items = Array.from({ length: 1_000 }, (_, i) => i)
  const read = (i: number) => {
    reads += 1
    return refuse(`items[${i}]`)()
  }
  let error: unknown
  try {
    readEach(items, read)
  } catch (thrown) {
    error = thrown
  }
  t.equal((error as RouseError).errors?.length, fieldErrorsMax)
  t.equal(reads, fieldErrorsMax + 1)
  t.end()
})

test('an error without a field is kept as it is', (t) => {
  const lost = new RouseError('lease_lost')
  t.equal(allFaults(lost, [refuse('a')]), lost)
  const broken = new Error('broken')
  t.equal(allFaults(broken, [refuse('a')]), broken)
  t.end()
})

test('a refused pop lists every invalid field', (t) => {
  t.throws(() => readPopQuery({ batch: '0', wait: 'maybe', timeout: '1', task: '..' }), {
    code: 'invalid_request',
    errors: [{ field: 'batch' }, { field: 'wait' }, { field: 'task' }],
  })
  const body = { consumerGroup: '', subscriptionMode: 'some', subscriptionFrom: 'then', batch: 1 }
  t.throws(() => readPopBody(body), {
    code: 'invalid_name',
    errors: [
      { field: 'consumerGroup' },
      { field: 'subscriptionMode' },
      { field: 'subscriptionFrom' },
    ],
  })
  t.end()
})
