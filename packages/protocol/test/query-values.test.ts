import fc from 'fast-check'
import { test } from 'tap'
import { parseBoolean, parseChoice, parseDecimal, parseTime } from '../src/index.ts'

const any = { min: 0, max: Number.MAX_SAFE_INTEGER }

test('decimal integers within their range are read', async (t) => {
  t.equal(parseDecimal('batch', '0', any), 0)
  t.equal(parseDecimal('batch', '1000', { min: 1, max: 1_000 }), 1_000)
  fc.assert(
    fc.property(fc.maxSafeNat(), (value) => parseDecimal('n', String(value), any) === value),
  )
})

test('anything but plain digits is refused', async (t) => {
  const texts = ['', ' 1', '1 ', '+1', '-1', '-0', '01', '00', '1.0', '1e3', '0x10', '1_000', '١']
  for (const text of [...texts, 'NaN', 'Infinity', '99999999999999999', 7, ['1'], null]) {
    t.throws(() => parseDecimal('batch', text, any), { code: 'invalid_request' }, String(text))
  }
})

test('a value beyond the range is refused, not clamped', async (t) => {
  for (const text of ['0', '1001']) {
    t.throws(() => parseDecimal('batch', text, { min: 1, max: 1_000 }), {
      code: 'invalid_request',
      detail: 'batch must be an integer from 1 to 1000',
      errors: [{ field: 'batch', message: 'must be an integer from 1 to 1000' }],
    })
  }
})

test('only the canonical spelling of an integer is read', async () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[-+ 0-9.e]{1,6}$/)), (text) => {
      try {
        return String(parseDecimal('n', text, any)) === text
      } catch {
        return !/^(0|[1-9]\d*)$/.test(text) || Number(text) > any.max
      }
    }),
  )
})

test('booleans are true or false, and nothing similar', async (t) => {
  t.equal(parseBoolean('wait', 'true'), true)
  t.equal(parseBoolean('wait', 'false'), false)
  for (const text of ['', '1', '0', 'TRUE', 'yes', ' true', true]) {
    t.throws(() => parseBoolean('wait', text), { code: 'invalid_request' })
  }
})

test('a choice is one of the listed values', async (t) => {
  t.equal(parseChoice('mode', 'new', ['all', 'new']), 'new')
  t.throws(() => parseChoice('mode', 'newer', ['all', 'new']), {
    message: 'mode must be all or new',
  })
})

test('times need a valid date, time and zone', async (t) => {
  t.equal(parseTime('runAt', '2030-01-31T12:00:00Z'), Date.UTC(2030, 0, 31, 12))
  t.equal(parseTime('runAt', '2030-01-31T12:00:00.250+02:00'), Date.UTC(2030, 0, 31, 10, 0, 0, 250))
  t.equal(parseTime('runAt', '2028-02-29T00:00:00Z'), Date.UTC(2028, 1, 29))
  const wrong = [
    '2030-01-31',
    '2030-01-31T12:00:00',
    '2030-02-31T12:00:00Z',
    '2029-02-29T00:00:00Z',
    '2030-13-01T00:00:00Z',
    '2030-01-00T00:00:00Z',
    '2030-01-31T25:00:00Z',
    '2030-01-31T12:00:00+99:00',
    'now',
    '1893456000000',
    5,
  ]
  for (const text of wrong) {
    t.throws(() => parseTime('runAt', text), { code: 'invalid_request' }, String(text))
  }
})

test('every time that JavaScript writes is read', async () => {
  const date = fc.date({
    min: new Date('1970-01-01'),
    max: new Date('9999-12-31'),
    noInvalidDate: true,
  })
  fc.assert(fc.property(date, (time) => parseTime('t', time.toISOString()) === time.getTime()))
})
