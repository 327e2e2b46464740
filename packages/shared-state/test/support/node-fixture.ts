import type { GrantOutcome, WaitGroup, WakeHint } from '@rouse/protocol'
import {
  groupKey,
  SharedStateManager,
  type SharedStatePorts,
  type SharedStateSettings,
} from '../../src/index.ts'

export interface RecordedGrant {
  readonly sidecarId: string | number
  readonly key: string
  readonly grantId: number
  readonly source: string
}

export const orders: WaitGroup = { source: { queue: 'orders' }, group: 'g' }
export const ordersKey = groupKey(orders)
export const hint: WakeHint = {
  queue: 'orders',
  partition: 'p',
  namespace: null,
  task: null,
  count: 1,
}

/** A manager with a manual clock, sidecars 1 to 3, and a record of its actions. */
export function nodeFixture(
  settings: Partial<SharedStateSettings> = {},
  ports: Partial<SharedStatePorts> = {},
) {
  const clock = { now: 1_000 }
  const grants: RecordedGrant[] = []
  const broadcasts: (WakeHint | 'everything')[] = []
  const servedGroups: (readonly string[])[] = []
  const manager = new SharedStateManager(
    {
      now: () => clock.now,
      grant: (sidecarId, group, grantId, source) =>
        grants.push({ sidecarId, key: groupKey(group), grantId, source }),
      broadcast(one, _kind, served) {
        broadcasts.push(one)
        servedGroups.push([...served])
      },
      broadcastEverything: () => broadcasts.push('everything'),
      ...ports,
    },
    settings,
  )
  for (const id of [1, 2, 3]) manager.registerSidecar(id)
  const lastGrant = (): RecordedGrant => {
    const grant = grants.at(-1)
    if (grant === undefined) throw new Error('nothing was granted')
    return grant
  }
  return {
    clock,
    manager,
    grants,
    broadcasts,
    lastGrant,
    /** For each hint that was broadcast: the consumer groups whose waiters on this node take the messages. */
    served: () => servedGroups,
    /** Adds waiters at a worker; the worker makes their first query. */
    waits(sidecarId: number, description: WaitGroup = orders, count = 1): void {
      manager.setWaiting(sidecarId, description, count)
      manager.requestGrant(sidecarId, groupKey(description))
    },
    take(grant = lastGrant()): boolean {
      return manager.grantTaken(grant.sidecarId, grant.key, grant.grantId)
    },
    /** Reports the outcome of a pop, by default of the last grant. */
    pops(outcome: GrantOutcome, found = 0, grant = lastGrant()): boolean {
      manager.grantTaken(grant.sidecarId, grant.key, grant.grantId)
      return manager.releaseGroup(grant.key, grant.grantId, outcome, found)
    },
    /** Returns the keys of the groups whose fallback poll is due. */
    due: (): string[] => [...manager.dueForFallback().keys()],
    tickAt(now: number): void {
      clock.now = now
      manager.tick()
    },
    group: (key = ordersKey) => manager.getStats().group_backoff.groups.find((g) => g.key === key),
  }
}

/** A node with one waiter, whose first query found nothing. */
export function idleNode(settings: Partial<SharedStateSettings> = {}) {
  const node = nodeFixture(settings)
  node.waits(1)
  node.pops('empty')
  return node
}
