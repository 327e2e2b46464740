// Each preset in the kind of network it is made for: no running node is declared dead, a dead node is
// detected in time, and hints arrive.
import { test } from 'tap'
import { type OutgoingHint, type PeerEvent, type PresetName, presets } from '../src/index.ts'
import { unsigned } from './simulation/unsigned.ts'
import type { LinkQuality } from './simulation/virtual-network.ts'
import { nodeIdOf, VirtualCluster } from './support/virtual-cluster.ts'

const networks: Readonly<Record<PresetName, Partial<LinkQuality>>> = {
  loopback: { delayMs: 0.05, jitterMs: 0.1 },
  lan: { delayMs: 0.3, jitterMs: 1, loss: 0.001 },
  wan: { delayMs: 80, jitterMs: 60, loss: 0.02, reordering: 0.01, duplication: 0.01 },
}
const hint: OutgoingHint = { kind: 'MESSAGE_AVAILABLE', scope: 'orders', count: 1 }
const nodeCount = 5
const hintCount = 200

for (const name of Object.keys(networks) as PresetName[]) {
  const preset = presets[name]

  test(`${name}: five nodes keep seeing each other, and detect one that dies`, async (t) => {
    const cluster = new VirtualCluster({ seed: 3, preset, signer: unsigned })
    const { network } = cluster
    Object.assign(network.quality, networks[name])
    for (let index = 0; index < nodeCount; index += 1) cluster.start(index)
    cluster.discoverAll()
    network.runFor(600_000)
    const events = cluster.nodes.flatMap((one) => one.events.map(({ event }) => event))
    const count = (wanted: PeerEvent) => events.filter((event) => event === wanted).length
    t.equal(count('joined'), nodeCount * (nodeCount - 1))
    t.equal(count('dead') + count('unreachable'), 0, 'no node was declared dead in ten minutes')
    t.ok(count('suspect') <= 2, 'three heartbeats in a row are hardly ever lost')
    const diedAt = network.now
    network.crash(cluster.at(0).node)
    network.runFor(20 * preset.heartbeatMs)
    for (const { events: seen } of cluster.nodes.slice(1)) {
      const dead = seen.find(({ nodeId, event }) => nodeId === nodeIdOf(0) && event === 'dead')
      const afterMs = (dead?.at ?? Number.POSITIVE_INFINITY) - diedAt
      t.ok(afterMs <= 11 * preset.heartbeatMs, `detected after ${Math.round(afterMs)} ms`)
    }
  })

  test(`${name}: hints arrive by the first or second copy, or their loss is reported`, async (t) => {
    const cluster = new VirtualCluster({ seed: 4, preset, signer: unsigned })
    const { network } = cluster
    Object.assign(network.quality, networks[name])
    for (let index = 0; index < 2; index += 1) cluster.start(index)
    cluster.discoverAll()
    network.runFor(10_000)
    for (let sent = 0; sent < hintCount; sent += 1) {
      network.act(cluster.at(0).node, (core, now) => core.hint(hint, now))
      network.runFor(1_000)
    }
    network.runFor(2 * preset.heartbeatMs)
    const { hints, lost } = cluster.at(1)
    const noticed = lost.reduce((sum, { count }) => sum + count, 0)
    // A hint that a heartbeat overtakes is reported as lost and still arrives later.
    t.ok(
      hints.length + noticed >= hintCount,
      `${hints.length} arrived, ${noticed} were reported lost`,
    )
    t.ok(hints.length >= 0.99 * hintCount)
  })
}
