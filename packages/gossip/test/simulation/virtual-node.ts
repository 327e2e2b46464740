import type { Address, GossipCore } from '../../src/index.ts'

export interface VirtualNode {
  address: Address
  readonly nodeId: string
  readonly incarnation: number
  readonly core: GossipCore
  isRunning: boolean
  /** When its life ended; Infinity while it has not. */
  stoppedAt: number
  /** Frozen until then: what arrives meanwhile waits. */
  stalledUntil: number
  /** By how much its clock differs from the virtual one. */
  clockOffsetMs: number
  /** How far its clock has jumped ahead, all in all. */
  skippedMs: number
  armedFor: number
  bytesSent: number
  bytesReceived: number
  /** When it was frozen, in order. */
  readonly stalls: { readonly from: number; readonly until: number }[]
  /** When the last datagram of each node that arrived here had been sent. */
  readonly heardFrom: Map<VirtualNode, number>
  /** When the last datagram had been sent to each node of which it knew when it sent one that arrived here. */
  readonly answeredBy: Map<VirtualNode, number>
  /** Where else it is reached. Its own datagrams come from its address. */
  readonly aliases: Address[]
}

/** How long a node was frozen since then. */
export function stalledMsSince({ stalls }: VirtualNode, since: number, now: number): number {
  return stalls.reduce((sum, { from, until }) => {
    return sum + Math.max(0, Math.min(until, now) - Math.max(from, since))
  }, 0)
}

export function lifeOf({ nodeId, incarnation }: Pick<VirtualNode, 'nodeId' | 'incarnation'>) {
  return `${nodeId}/${incarnation}`
}

export function raise(times: Map<VirtualNode, number>, node: VirtualNode, at: number): void {
  if (at > (times.get(node) ?? Number.NEGATIVE_INFINITY)) times.set(node, at)
}
