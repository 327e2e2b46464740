import { testRouse } from '../../src/testing/index.ts'
import { runBehaviourSuite } from './suite.ts'

runBehaviourSuite('in memory', async (t, options = {}) => {
  const { urls: _, transport: __, ...rest } = options
  const rouse = testRouse(rest)
  t.teardown(() => rouse.close())
  return { rouse, pass: (ms) => rouse.advance(ms) }
})
