import type { Outcome } from '../history/records.ts'
import type { ChaosClient } from './chaos-client.ts'
import type { RawClient, RawItem } from './raw-client.ts'

/** A producer that is further behind than this, because the cluster was unavailable, does not catch up. */
const behindMsMax = 500
const retryMs = 100

/** Calls `act` at this rate until production ends; after a call that was not ok, waits a little longer. */
export async function paced(
  client: ChaosClient,
  perSecond: number,
  act: () => Promise<Outcome>,
): Promise<void> {
  const { producing, random } = client
  // The first call has a random delay, so that the producers do not start at the same moment.
  let next = performance.now() + (random.next() * 1_000) / perSecond
  while (!producing.aborted) {
    await client.pause(Math.max(0, next - performance.now()), producing)
    if (producing.aborted) return
    const result = await act()
    if (result === 'fail' || result === 'unknown') await client.pause(retryMs, producing)
    next = Math.max(next, performance.now() - behindMsMax) + 1_000 / perSecond
  }
}

/** A random number around the mean, at least one. */
export function countAround(client: ChaosClient, mean: number): number {
  return 1 + client.random.below(Math.max(1, Math.round(2 * mean - 1)))
}

/** Repeats the push until the messages are known to be stored. Their transactionIds make this safe. */
export async function pushUntilStored(
  client: ChaosClient,
  raw: RawClient,
  items: readonly RawItem[],
): Promise<Outcome> {
  for (;;) {
    const { outcome } = await raw.push(items)
    if (outcome === 'ok' || client.producing.aborted) return outcome
    await client.pause(retryMs, client.producing)
  }
}

/** The SDK retries by itself; when it gives up, the outcome is final. */
export async function bySdk(pushed: Promise<unknown>): Promise<Outcome> {
  try {
    await pushed
    return 'ok'
  } catch {
    return 'unknown'
  }
}
