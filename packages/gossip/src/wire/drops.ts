/** Why a datagram was dropped. Drops are counted, never logged one by one. */
export const dropReasons = [
  'size', // shorter than an empty frame, or longer than any frame
  'magic', // not gossip at all
  'version', // an unsupported wire version
  'length', // truncated or extended in transit
  'cluster', // for another cluster
  'key', // signed with a key that is not in the ring
  'mac', // forged or damaged
  'self', // sent by this node
  'stale', // from an earlier incarnation of its sender, or from a node that has left
  'replay', // seen before, or too old to tell
  'misdirected', // addressed to another node, or to an earlier incarnation of this one
  'decode', // signed, but not MessagePack
  'shape', // MessagePack, but not a valid message
  'unknown', // from a node that is not a member (yet)
  'full', // the member limit is reached
  'limit', // a hello beyond the number that is answered per second
] as const

export type DropReason = (typeof dropReasons)[number]

export type Drops = Record<DropReason, number>

export function noDrops(): Drops {
  return Object.fromEntries(dropReasons.map((reason) => [reason, 0])) as Drops
}
