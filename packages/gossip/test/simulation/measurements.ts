// The measurements that are compared with targets, in virtual time: how soon a node joins, is detected as
// dead and is woken, and how much traffic an idle cluster has.
import type { OutgoingHint, PeerEvent } from '../../src/index.ts'
import { VirtualCluster } from '../support/virtual-cluster.ts'
import { unsigned } from './unsigned.ts'

export interface Measurements {
  readonly coldStartMs: number
  readonly joinMs: number
  readonly leaveMs: number
  readonly suspectMs: number
  readonly crashMs: number
  /** Bytes of the datagrams, without and with (`bytesPerSecond`) the headers of UDP and IPv4. */
  readonly payloadBytesPerSecond: number
  readonly bytesPerSecond: number
}

const ipAndUdpBytes = 28
const hint: OutgoingHint = {
  kind: 'MESSAGE_AVAILABLE',
  scope: 'orders',
  count: 1,
  keys: ['q/orders'],
}

export function measure(nodeCount: number, seed: number): Measurements {
  const cluster = new VirtualCluster({ seed, signer: unsigned, recordsHeard: false })
  const { network } = cluster
  for (let index = 0; index < nodeCount; index += 1) cluster.start(index)
  cluster.discoverAll()
  network.runFor(5_000)
  const coldStartMs = lastEventAt(cluster, 'joined', 0)

  const steadyMs = 10_000
  const before = sums(cluster)
  network.runFor(steadyMs)
  const after = sums(cluster)
  const perNode = (bytes: number) => (bytes * 1_000) / steadyMs / nodeCount

  let startedAt = network.now
  cluster.start(nodeCount)
  cluster.discoverAll()
  network.runFor(3_000)
  const joinMs = lastEventAt(cluster, 'joined', startedAt) - startedAt

  startedAt = network.now
  network.act(cluster.at(0).node, (core, now) => core.leave(now))
  network.runFor(200)
  network.crash(cluster.at(0).node)
  const leaveMs = lastEventAt(cluster, 'left', startedAt) - startedAt

  startedAt = network.now
  network.crash(cluster.at(1).node)
  network.runFor(Math.max(7_000, nodeCount * 2 * 12))
  return {
    coldStartMs,
    joinMs,
    leaveMs,
    suspectMs: lastEventAt(cluster, 'suspect', startedAt) - startedAt,
    crashMs: lastEventAt(cluster, 'dead', startedAt) - startedAt,
    payloadBytesPerSecond: perNode(after.payload - before.payload),
    bytesPerSecond: perNode(after.bytes - before.bytes),
  }
}

export interface WakeMeasurements {
  readonly within10Ms: number
  readonly p50Ms: number
  readonly maxMs: number
}

/**
 * Measures how soon a waiter on one node learns of each of many pushes on another, by a hint or by a reported
 * loss. There are no fallback polls. If one peer gets the hint first, the node with the waiter settles it.
 */
export function measureWakes(
  loss: number,
  seed: number,
  pushCount: number,
  spread: 'one' | 'all',
): WakeMeasurements {
  const cluster = VirtualCluster.of(3, { seed, signer: unsigned })
  const { network } = cluster
  const waiter = cluster.at(0)
  cluster.wait(0, 1, ['q/orders'])
  waiter.settles = true
  network.runFor(1_000)
  network.quality.loss = loss
  const pushedAt: number[] = []
  const toldAt: number[] = []
  for (let push = 0; push < pushCount; push += 1) {
    const at = network.now + push * 700 + (push % 37) * 11
    network.at(at, () => {
      pushedAt.push(network.now)
      network.act(cluster.at(1).node, (core, now) => core.hint({ ...hint, spread }, now))
    })
  }
  waiter.onTold = () => {
    while (toldAt.length < pushedAt.length) toldAt.push(network.now)
  }
  network.runFor(pushCount * 700 + 10_000)
  const waits = toldAt.map((at, index) => at - (pushedAt[index] ?? at)).toSorted((a, b) => a - b)
  return {
    within10Ms: waits.filter((ms) => ms <= 10).length / pushCount,
    p50Ms: waits[Math.floor(waits.length / 2)] ?? Number.NaN,
    maxMs: waits.length === pushCount ? (waits.at(-1) ?? Number.NaN) : Number.POSITIVE_INFINITY,
  }
}

function sums(cluster: VirtualCluster): { readonly bytes: number; readonly payload: number } {
  const bytes = cluster.nodes.reduce((sum, { node }) => sum + node.bytesSent, 0)
  return { bytes, payload: bytes - cluster.network.datagrams * ipAndUdpBytes }
}

function lastEventAt(cluster: VirtualCluster, event: PeerEvent, since: number): number {
  const times = cluster.nodes.flatMap(({ events }) =>
    events.filter((one) => one.event === event && one.at >= since).map(({ at }) => at),
  )
  return times.reduce((last, at) => Math.max(last, at), Number.NEGATIVE_INFINITY)
}
