import { eventually } from '@rouse/testkit'
import { send } from './http.ts'

export interface NodeState {
  readonly wakes: Readonly<Record<string, number>>
  readonly mode: { readonly mode: 'healthy' | 'aggressive'; readonly why: readonly string[] }
  readonly local_sidecars: number
  readonly group_backoff: {
    readonly groups_in_flight: number
    readonly groups: readonly { readonly key: string; readonly waiting: number }[]
  }
  readonly counters: Readonly<Record<string, number>>
  readonly retention: { readonly held_by: readonly Readonly<Record<string, unknown>>[] }
  readonly time: {
    readonly listener: 'up' | 'down' | 'off'
    readonly looks: number
    readonly skewMs: number
    readonly runs: Readonly<Record<'reap' | 'promote' | 'cron' | 'retain', number>>
  }
}

export async function stateOf({ url }: { readonly url: string }): Promise<NodeState> {
  return (await send('GET', `${url}/stats`)).body as NodeState
}

/** Resolves when `count` pops wait for a queue and their first queries have ended. */
export async function untilWaiting(
  node: { readonly url: string },
  queue: string,
  count: number,
): Promise<void> {
  await eventually(
    async () => {
      const { groups, groups_in_flight: inFlight } = (await stateOf(node)).group_backoff
      const ours = groups.filter(({ key }) => key.startsWith(`${queue}/`))
      return ours.reduce((sum, { waiting }) => sum + waiting, 0) === count && inFlight === 0
    },
    { timeoutMs: 20_000 },
  )
}

/** Returns by how much each counter of wake-ups rose during an action. */
export async function wakesDuring(
  node: { readonly url: string },
  act: () => Promise<unknown>,
): Promise<Record<string, number>> {
  const before = (await stateOf(node)).wakes
  await act()
  const after = (await stateOf(node)).wakes
  return Object.fromEntries(
    Object.entries(after).map(([source, count]) => [source, count - (before[source] ?? 0)]),
  )
}

/** Waits in real time. For tests of a state that must not change during this time. */
export async function pass(ms: number): Promise<void> {
  const begun = performance.now()
  await eventually(() => performance.now() - begun >= ms, { timeoutMs: ms + 5_000, intervalMs: 10 })
}
