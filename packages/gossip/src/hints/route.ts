import { nameHash, type Wanted } from '../interest/peer-interest.ts'
import type { OutgoingHint } from './hint.ts'

/** Which peers get a hint. */
export interface Route extends Wanted {
  /** One peer per consumer group gets it first. */
  readonly isOneFirst: boolean
  /** Peers that have it already. */
  readonly told: ReadonlySet<unknown>
}

const none: ReadonlySet<never> = new Set()

export function routeOf({ keys, group, served, spread }: OutgoingHint): Route {
  return {
    scopes: keys?.map(nameHash),
    group: group === undefined ? undefined : nameHash(group),
    served: served === undefined ? none : new Set(Array.from(served, nameHash)),
    isOneFirst: spread === 'one' && keys !== undefined,
    told: none,
  }
}

/** The route of two hints that are sent as one. Every peer that gets one of them gets the merged hint. */
export function mergedRoute(a: Route, b: Route): Route {
  return {
    scopes: a.scopes && b.scopes && union(a.scopes, b.scopes),
    group: a.group === b.group ? a.group : undefined,
    served: intersection(a.served, b.served),
    isOneFirst: a.isOneFirst && b.isOneFirst,
    told: intersection(a.told, b.told),
  }
}

function union(a: readonly number[], b: readonly number[]): readonly number[] {
  return b.every((one) => a.includes(one)) ? a : [...new Set([...a, ...b])]
}

function intersection<Item>(a: ReadonlySet<Item>, b: ReadonlySet<Item>): ReadonlySet<Item> {
  if (a.size === 0 || b.size === 0) return none
  return new Set([...a].filter((item) => b.has(item)))
}
