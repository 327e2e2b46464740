import { test } from 'tap'
import { BoundedMap } from '../../src/observe/bounded-map.ts'

test('a bounded map forgets its oldest entry, and a new value does not make an entry younger', (t) => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1).set('b', 2).set('a', 3)
  t.same(
    [...map],
    [
      ['a', 3],
      ['b', 2],
    ],
  )
  map.set('c', 4)
  t.same(
    [...map],
    [
      ['b', 2],
      ['c', 4],
    ],
  )
  t.end()
})
