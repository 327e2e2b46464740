import { setTimeout as delay } from 'node:timers/promises'
import { clientOf, sharedCluster } from '../support/cluster.ts'
import { runBehaviourSuite } from './suite.ts'

const cluster = await sharedCluster()

runBehaviourSuite('a node', async (t, options) => ({
  rouse: clientOf(t, cluster.urls, options),
  pass: (ms) => delay(ms),
}))
