import { MemoryNetwork } from '../../src/index.ts'
import { transportSuite } from '../support/transport-suite.ts'

transportSuite('memory', () => {
  const network = new MemoryNetwork()
  let port = 0
  return {
    make: () => {
      port += 1
      return network.transport(`10.0.0.1:${port}`)
    },
    nowhere: '10.0.0.2:1',
  }
})
