import { setTimeout as delay } from 'node:timers/promises'
import { clientOf, sharedCluster } from '../support/cluster.ts'
import { runMessageSuite } from './message-suite.ts'
import type { OpenSubject } from './subject.ts'
import { runBehaviourSuite } from './suite.ts'

const cluster = await sharedCluster()

const open: OpenSubject = async (t, options) => ({
  rouse: clientOf(t, cluster.urls, options),
  pass: (ms) => delay(ms),
})

runBehaviourSuite('a node', open)
runMessageSuite('a node', open)
