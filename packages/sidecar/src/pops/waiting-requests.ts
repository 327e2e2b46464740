// The deque of waiting pops. A waiter settles exactly once: messages, deadline, disconnect or drain. A lease
// that arrives for a settled waiter is released.

import type { WaitGroup } from '@rouse/protocol'
import type { Lease } from '@rouse/storage'
import type { PopResponse, PopSpec } from '../operation.ts'
import type { SidecarError } from '../sidecar-error.ts'

export interface Waiter {
  spec: PopSpec
  /** False for a pop that does not wait for messages. */
  readonly waits: boolean
  settled: boolean
  /** A pop in flight includes this waiter. */
  inFlight: boolean
  readonly settle: (outcome: PopResponse) => void
  readonly fail: (error: SidecarError) => void
}

export interface WaitingGroup {
  readonly key: string
  readonly description: WaitGroup
  /** Oldest first. */
  readonly waiters: Set<Waiter>
  /** The position where the last pop of this group found messages: the next pop starts after it. */
  after: string
}

export class WaitingRequests {
  readonly #groups = new Map<string, WaitingGroup>()
  #count = 0

  /** Waiters of all groups. */
  get count(): number {
    return this.#count
  }

  get groups(): IterableIterator<WaitingGroup> {
    return this.#groups.values()
  }

  groupOf(description: WaitGroup): WaitingGroup | undefined {
    return this.#groups.get(groupKey(description))
  }

  add(waiter: Waiter): WaitingGroup {
    const description = { source: waiter.spec.source, group: waiter.spec.group }
    const key = groupKey(description)
    let group = this.#groups.get(key)
    if (group === undefined) {
      group = { key, description, waiters: new Set(), after: '0' }
      this.#groups.set(key, group)
    }
    group.waiters.add(waiter)
    this.#count += 1
    return group
  }

  /** Idempotent. Removes a group without waiters. */
  remove(group: WaitingGroup, waiter: Waiter): void {
    if (!group.waiters.delete(waiter)) return
    this.#count -= 1
    if (group.waiters.size === 0) this.#groups.delete(group.key)
  }
}

export const nothing: PopResponse = { leases: [], paused: false, draining: false }

export function found(leases: readonly Lease[]): PopResponse {
  return { leases, paused: false, draining: false }
}

function groupKey({ source, group }: WaitGroup): string {
  return 'queue' in source
    ? JSON.stringify([source.queue, source.partition ?? null, group])
    : JSON.stringify([source.namespace ?? null, source.task ?? null, null, group])
}
