import { test } from 'tap'
import { gateFaults, nemeses } from './nemeses.ts'

test('every fault has a name of its own, and those of the gate exist', async (t) => {
  const names = nemeses.map(({ name }) => name)
  t.equal(new Set(names).size, names.length)
  t.same(
    gateFaults.filter((name) => !names.includes(name)),
    [],
  )
})
