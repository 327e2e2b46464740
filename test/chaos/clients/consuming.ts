import type { WorkOptions } from '@rouse/client'
import type { AckedItem } from '../history/records.ts'
import { leaseSeconds } from '../workloads/workload.ts'
import type { ChaosClient } from './chaos-client.ts'
import { ackOf, type RawClient, type RawMessage, type RawPop } from './raw-client.ts'

const waitMs = 2_000
const troubledMs = 100
const ackTriesMax = 5

export type PopOf = Partial<RawPop>

/** Pops, handles what came, and pops again until consumption ends. */
export async function consume(
  client: ChaosClient,
  raw: RawClient,
  pop: PopOf,
  handle: (messages: readonly RawMessage[]) => Promise<unknown>,
): Promise<void> {
  while (!client.consuming.aborted) {
    const { outcome, body = [] } = await raw.pop({ batch: 50, partitions: 50, waitMs, ...pop })
    if (body.length > 0) await handle(body)
    else if (outcome !== 'ok') await client.pause(troubledMs, client.consuming)
  }
}

/** An ack that was not heard is sent again while the lease may last: if the first one counted, the next is stale. */
export async function ackUntilHeard(
  client: ChaosClient,
  raw: RawClient,
  messages: readonly RawMessage[],
  status: AckedItem['status'] = 'completed',
): Promise<void> {
  for (let tries = 1; tries <= ackTriesMax; tries += 1) {
    const { outcome } = await raw.ack(messages, status)
    if (outcome === 'ok') return
    await client.pause(troubledMs * tries, client.consuming)
  }
}

/** Acknowledges with the next pop; what an answer that went astray held comes again when its lease is over. */
export async function ackAndFetch(client: ChaosClient, raw: RawClient, pop: PopOf): Promise<void> {
  let held: readonly RawMessage[] = []
  while (!client.consuming.aborted) {
    const acks = held.length === 0 ? undefined : held.map((message) => ackOf(message, 'completed'))
    const asked = { batch: 50, partitions: 50, waitMs, ...pop, acks }
    const { outcome, body = [] } = await raw.pop(asked)
    if (outcome !== 'ok') await client.pause(troubledMs, client.consuming)
    // Refused means not acknowledged: those are tried once more.
    held = outcome === 'fail' && acks !== undefined ? held : body
  }
  if (held.length > 0) await raw.ack(held)
}

/** A worker of the SDK, in place of a loop of one's own. */
export async function workBySdk(
  client: ChaosClient,
  { queue, group }: { readonly queue: string; readonly group?: string },
  options: WorkOptions = {},
): Promise<void> {
  const named = client.sdk().queue(queue)
  const consumer = group === undefined ? named : named.group(group)
  const worker = consumer.work({ lease: `${leaseSeconds}s`, ...options }, () => {})
  await untilAborted(client.consuming)
  await worker.stop()
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
