// The rules of the simulation detect what they claim to detect.
import { test } from 'tap'
import { presets } from '../../src/index.ts'
import { VirtualCluster } from '../support/virtual-cluster.ts'
import { checkWhole } from './invariants.ts'

const { heartbeatMs, suspectAfter } = presets.lan
const missedMs = (suspectAfter + 2) * heartbeatMs * 1.1

function ghostsIn(cluster: VirtualCluster): string[] {
  const running = cluster.nodes.filter(({ node }) => node.isRunning)
  return checkWhole(running, cluster.network)
}

test('an ended incarnation may be seen until its detection is due, and no longer', async (t) => {
  const cluster = VirtualCluster.of(3, { preset: { ...presets.lan, suspectAfter: 60 } })
  const { network } = cluster
  network.crash(cluster.at(2).node)
  network.runFor(missedMs - 1)
  t.same(ghostsIn(cluster), [])
  network.runFor(2)
  t.same(ghostsIn(cluster), [
    'node-0/1 misses no node, sees ghosts node-2/3',
    'node-1/2 misses no node, sees ghosts node-2/3',
  ])
})

test('a node that stalled since then may see it for that much longer', async (t) => {
  const cluster = VirtualCluster.of(3, { preset: { ...presets.lan, suspectAfter: 60 } })
  const { network } = cluster
  network.crash(cluster.at(2).node)
  network.stall(cluster.at(0).node, 1_000)
  network.runFor(missedMs + 1)
  t.same(ghostsIn(cluster), ['node-1/2 misses no node, sees ghosts node-2/3'])
  network.runFor(1_000)
  t.match(ghostsIn(cluster), [/^node-0\/1 /, /^node-1\/2 /])
})

test('a running node that is not seen breaks the rule at once', async (t) => {
  const cluster = VirtualCluster.of(2)
  cluster.start(2)
  t.match(ghostsIn(cluster), [
    'node-0/1 misses node-2/3, sees ghosts -',
    'node-1/2 misses node-2/3, sees ghosts -',
    'node-2/3 misses node-0/1 node-1/2, sees ghosts -',
  ])
})
