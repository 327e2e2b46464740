import { test } from 'tap'
import { gateFaults, nemeses } from './nemeses.ts'

test('every fault has its own name, and the faults of the gate exist', async (t) => {
  const names = nemeses.map(({ name }) => name)
  t.equal(new Set(names).size, names.length)
  t.same(
    gateFaults.filter((name) => !names.includes(name)),
    [],
  )
})
