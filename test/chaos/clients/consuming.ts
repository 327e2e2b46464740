import type { Context, Message, WorkOptions } from '@rouse/client'
import type { AckedItem } from '../history/records.ts'
import { leaseSeconds } from '../workloads/workload.ts'
import type { ChaosClient } from './chaos-client.ts'
import { ackOf, type RawClient, type RawMessage, type RawPop } from './raw-client.ts'
import type { Payload } from './wire-call.ts'

const waitMs = 2_000
const retryMs = 100
const ackTriesMax = 5

export type PopOf = Partial<RawPop>

/** Pops and handles messages until consumption ends. */
export async function consume(
  client: ChaosClient,
  raw: RawClient,
  pop: PopOf,
  handle: (messages: readonly RawMessage[]) => Promise<unknown>,
): Promise<void> {
  while (!client.consuming.aborted) {
    const { outcome, body = [] } = await raw.pop({ batch: 50, partitions: 50, waitMs, ...pop })
    if (body.length > 0) await handle(body)
    else if (outcome !== 'ok') await client.pause(retryMs, client.consuming)
  }
}

/**
 * Repeats an ack that got no response, for as long as the lease may last. If the first ack took effect, the
 * next one is stale.
 */
export async function ackUntilAnswered(
  client: ChaosClient,
  raw: RawClient,
  messages: readonly RawMessage[],
  status: AckedItem['status'] = 'completed',
  resultOf?: (message: RawMessage) => unknown,
): Promise<void> {
  for (let tries = 1; tries <= ackTriesMax; tries += 1) {
    const { outcome } = await raw.ack(messages, status, resultOf)
    if (outcome === 'ok') return
    await client.pause(retryMs * tries, client.consuming)
  }
}

/**
 * Acknowledges with the next pop. If a response is lost, its messages are delivered again when the lease
 * expires.
 */
export async function ackAndFetch(client: ChaosClient, raw: RawClient, pop: PopOf): Promise<void> {
  let held: readonly RawMessage[] = []
  while (!client.consuming.aborted) {
    const acks = held.length === 0 ? undefined : held.map((message) => ackOf(message, 'completed'))
    const asked = { batch: 50, partitions: 50, waitMs, ...pop, acks }
    const { outcome, body = [] } = await raw.pop(asked)
    if (outcome !== 'ok') await client.pause(retryMs, client.consuming)
    // A refused call acknowledged nothing, so the acks are sent again with the next pop.
    held = outcome === 'fail' && acks !== undefined ? held : body
  }
  if (held.length > 0) await raw.ack(held)
}

export type SdkHandler = (
  message: Message<Payload>,
  context: Context<Record<string, Payload>>,
) => unknown

/** Consumes with a worker of the SDK instead of a pop loop. By default every message is completed. */
export async function workBySdk(
  client: ChaosClient,
  { queue, group }: { readonly queue: string; readonly group?: string },
  options: WorkOptions = {},
  handle: SdkHandler = () => {},
): Promise<void> {
  const named = client.sdk().queue(queue)
  const consumer = group === undefined ? named : named.group(group)
  const worker = consumer.work({ lease: `${leaseSeconds}s`, from: 'all', ...options }, handle)
  await untilAborted(client.consuming)
  await worker.stop()
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
