/** Why a datagram was not used. They are counted, never logged one by one. */
export const dropReasons = [
  'size', // shorter than an empty frame, or longer than any frame
  'magic', // not gossip at all
  'version', // a wire version that is not spoken here
  'length', // cut short or continued on the way
  'cluster', // another cluster's
  'key', // signed with a key that is not in the ring
  'mac', // forged or damaged
  'self', // our own, come back
  'stale', // of an earlier life of its sender, or of one that has left
  'replay', // seen before, or too old to know
  'misdirected', // said to another node, or to an earlier life of this one
  'decode', // signed, but not MessagePack
  'shape', // MessagePack, but no message of ours
  'unknown', // of a node that is not a member (yet)
  'full', // there is no room for another member
  'limit', // more strangers in a second than are answered
] as const

export type DropReason = (typeof dropReasons)[number]

export type Drops = Record<DropReason, number>

export function noDrops(): Drops {
  return Object.fromEntries(dropReasons.map((reason) => [reason, 0])) as Drops
}
