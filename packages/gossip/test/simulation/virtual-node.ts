import type { Address, GossipCore } from '../../src/index.ts'

export interface VirtualNode {
  address: Address
  readonly nodeId: string
  readonly incarnation: number
  readonly core: GossipCore
  isRunning: boolean
  /** When this incarnation ended; Infinity while it runs. */
  stoppedAt: number
  /** Stalled until then: datagrams that arrive meanwhile wait. */
  stalledUntil: number
  /** The offset of its clock from virtual time. */
  clockOffsetMs: number
  /** How far its clock has jumped ahead in total. */
  skippedMs: number
  armedFor: number
  bytesSent: number
  bytesReceived: number
  /** When it stalled, in order. */
  readonly stalls: { readonly from: number; readonly until: number }[]
  /** For each node, when the last datagram that arrived here was sent. */
  readonly heardFrom: Map<VirtualNode, number>
  /** For each node, when we sent it the last datagram that it had received before it sent one that arrived
   * here. */
  readonly answeredBy: Map<VirtualNode, number>
  /** Other addresses that reach it. It sends from its main address. */
  readonly aliases: Address[]
}

/** How long a node stalled since then. */
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
