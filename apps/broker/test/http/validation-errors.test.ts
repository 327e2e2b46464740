import { fieldErrorsMax } from '@rouse/protocol'
import { test } from 'tap'
import { findFaults } from '../../src/http/validation-errors.ts'

const item = { required: [] }
const schema = { properties: { list: { items: item } } }

/** A validator that rejects elements other than 1, and counts those it has checked. */
function countingValidator() {
  let shown = 0
  const isGood = (value: unknown) => value === 1
  const compiler = {
    compile(part: object) {
      const check = Object.assign(
        (value: unknown): boolean => {
          if (part !== item) return false
          shown += 1
          return isGood(value)
        },
        { errors: [{ instancePath: '', message: 'is bad', params: {} }] },
      )
      return check
    },
  }
  return { compiler, shown: () => shown }
}

test('checking a list stops after the maximum number of errors', (t) => {
  const { compiler, shown } = countingValidator()
  const faults = findFaults(compiler, schema, { list: Array.from({ length: 1_000_000 }, () => 0) })
  t.equal(faults.length, fieldErrorsMax)
  t.match(faults.at(-1), { instancePath: `/list/${fieldErrorsMax - 1}` })
  t.equal(shown(), fieldErrorsMax)
  t.end()
})

test("an error after very many valid values is reported with the validator's own path", (t) => {
  const { compiler, shown } = countingValidator()
  const list = [...Array.from({ length: 1_000_000 }, () => 1), 0]
  t.match(findFaults(compiler, schema, { list }), [{ instancePath: '/list', message: 'is bad' }])
  t.ok(shown() < 20_000, `${shown()} checks`)
  t.end()
})
