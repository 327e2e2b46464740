import type { Address, GossipCore } from '../../src/index.ts'

export interface VirtualNode {
  address: Address
  readonly nodeId: string
  readonly incarnation: number
  readonly core: GossipCore
  isRunning: boolean
  /** When this incarnation ended; Infinity while it runs. */
  stoppedAt: number
  /** When the current stall ends. Datagrams that arrive before that wait. */
  stalledUntil: number
  /** The offset of the node's clock from virtual time. */
  clockOffsetMs: number
  /** How far the node's clock has jumped ahead in total. */
  skippedMs: number
  armedFor: number
  bytesSent: number
  bytesReceived: number
  /** All stalls of the node, in order. */
  readonly stalls: { readonly from: number; readonly until: number }[]
  /** For each other node, when it sent the last datagram that arrived here. */
  readonly heardFrom: Map<VirtualNode, number>
  /**
   * For each other node, when this node sent the last datagram that the other node has confirmed. A datagram
   * is confirmed when the other node has received it, and a datagram that it sent later has arrived here.
   */
  readonly answeredBy: Map<VirtualNode, number>
  /** Additional addresses at which the node can be reached. It sends from its main address. */
  readonly aliases: Address[]
}

/** How long a node stalled between `since` and `now`. */
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
