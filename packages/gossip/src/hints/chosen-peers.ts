// Which peers get a hint first. Consumer groups are independent, so the chosen peers together have every
// group that an interested peer has. The other interested peers get the hint later, unless the chosen ones
// report that they took the messages.
import type { MemberState } from '../membership/member.ts'

export interface Choosable {
  readonly state: MemberState
  readonly rttMs: number | undefined
  /** Greater for peers that were chosen later. */
  chosenNumber: number
  /** Until then other peers are preferred, because this one left a hint unsettled. */
  passedOverUntil: number
}

/** Chooses among the interested peers, given with their consumer groups. Greedy: the next peer is the one with
 * the most groups that are not covered yet; among equals a near one, then the one that was not chosen for
 * longest. */
export function choosePeers<To extends Choosable>(
  interested: ReadonlyMap<To, readonly number[]>,
  now: number,
): Set<To> {
  const chosen = new Set<To>()
  if (interested.size === 0) return chosen
  const open = new Set([...interested.values()].flat())
  const alive = [...interested.keys()].filter(({ state }) => state === 'alive')
  const isPassedOver = ({ passedOverUntil }: To) => passedOverUntil > now
  cover(
    interested,
    alive.filter((peer) => !isPassedOver(peer)),
    open,
    chosen,
  )
  cover(interested, alive.filter(isPassedOver), open, chosen)
  // A silent peer may not answer, so all silent peers with a group that no other peer has get the hint.
  for (const [peer, groups] of interested) {
    if (peer.state !== 'alive' && groups.some((group) => open.has(group))) chosen.add(peer)
  }
  let last = 0
  for (const { chosenNumber } of interested.keys()) last = Math.max(last, chosenNumber)
  for (const peer of chosen) peer.chosenNumber = last + 1
  return chosen
}

/** Adds peers to `chosen` until they have all groups of `open` that any of `peers` has, and removes these groups
 * from `open`. */
function cover<To extends Choosable>(
  interested: ReadonlyMap<To, readonly number[]>,
  peers: readonly To[],
  open: Set<number>,
  chosen: Set<To>,
): void {
  while (open.size > 0) {
    let best: To | undefined
    let bestCount = 0
    for (const peer of peers) {
      const count = interested.get(peer)?.filter((group) => open.has(group)).length ?? 0
      if (count === 0 || count < bestCount) continue
      if (best !== undefined && count === bestCount && !isPreferred(peer, best)) continue
      best = peer
      bestCount = count
    }
    if (best === undefined) return
    chosen.add(best)
    for (const group of interested.get(best) ?? []) open.delete(group)
  }
}

function isPreferred(a: Choosable, b: Choosable): boolean {
  const nearer = distance(a) - distance(b)
  return nearer === 0 ? a.chosenNumber < b.chosenNumber : nearer < 0
}

/** Equal for round trips of 0 to 1 ms, 1 to 3 ms, 3 to 7 ms and so on: load is spread over similar peers. */
function distance({ rttMs }: Choosable): number {
  return rttMs === undefined ? Number.POSITIVE_INFINITY : Math.floor(Math.log2(1 + rttMs))
}
