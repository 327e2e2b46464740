import type { Outcome } from '../history/records.ts'
import type { ChaosClient } from './chaos-client.ts'
import type { RawClient, RawItem } from './raw-client.ts'

/** A producer that fell behind so much, because the cluster was away, does not catch up. */
const behindMsMax = 500
const troubledMs = 100

/** Acts so often a second until production ends; after an act that was not ok, a little later. */
export async function paced(
  client: ChaosClient,
  perSecond: number,
  act: () => Promise<Outcome>,
): Promise<void> {
  const { producing, random } = client
  // Not all at once.
  let next = performance.now() + (random.next() * 1_000) / perSecond
  while (!producing.aborted) {
    await client.pause(Math.max(0, next - performance.now()), producing)
    if (producing.aborted) return
    const heard = await act()
    if (heard === 'fail' || heard === 'unknown') await client.pause(troubledMs, producing)
    next = Math.max(next, performance.now() - behindMsMax) + 1_000 / perSecond
  }
}

/** Around the mean, at least one. */
export function countAround(client: ChaosClient, mean: number): number {
  return 1 + client.random.below(Math.max(1, Math.round(2 * mean - 1)))
}

/** With transaction ids it may be sent until it is known to be stored. */
export async function pushUntilStored(
  client: ChaosClient,
  raw: RawClient,
  items: readonly RawItem[],
): Promise<Outcome> {
  for (;;) {
    const { outcome } = await raw.push(items)
    if (outcome === 'ok' || client.producing.aborted) return outcome
    await client.pause(troubledMs, client.producing)
  }
}

/** The SDK tries by itself; what it gives up on has ended one way or the other. */
export async function bySdk(pushed: Promise<unknown>): Promise<Outcome> {
  try {
    await pushed
    return 'ok'
  } catch {
    return 'unknown'
  }
}
