import { testRouse } from '../../src/testing/index.ts'
import { runMessageSuite } from './message-suite.ts'
import type { OpenSubject } from './subject.ts'
import { runBehaviourSuite } from './suite.ts'

const open: OpenSubject = async (t, options = {}) => {
  const { urls: _, transport: __, ...rest } = options
  const rouse = testRouse(rest)
  t.teardown(() => rouse.close())
  return { rouse, pass: (ms) => rouse.advance(ms) }
}

runBehaviourSuite('in memory', open)
runMessageSuite('in memory', open)
