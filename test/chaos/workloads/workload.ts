// A workload: queues with their options, and the clients that push into them and pop from them.
import type { ChaosClient } from '../clients/chaos-client.ts'
import type { QueueRecord } from '../history/records.ts'

export interface Workload {
  readonly name: string
  readonly queues: readonly WorkloadQueue[]
  /** `--rate` makes the producers faster, but does not add clients. */
  readonly clients: readonly ClientSpec[]
}

/** A queue of a workload, with what the checkers need to know about it. */
export interface WorkloadQueue
  extends Pick<QueueRecord, 'queue' | 'stage' | 'hasUniqueKeys' | 'hasPriorities' | 'lettersOf'> {
  readonly namespace?: string
  readonly task?: string
  readonly groups?: readonly string[]
  readonly ordering?: QueueRecord['ordering']
  readonly retryLimit?: number
  readonly retryBackoffMs?: readonly number[]
  /** The waiters of the queue are idle, so a push must wake one of them soon. */
  readonly isForWakes?: boolean
  /**
   * The age in seconds at which completed messages (`completedRetention`) and all messages (`retention`) are
   * removed.
   */
  readonly completedRetention?: number
  readonly retention?: number
  /** Every ack returns a result, and the queue records every attempt. */
  readonly hasResults?: boolean
  /** The queue that given-up messages are moved to; it must be configured before this one. */
  readonly deadLetterTo?: string
}

export interface ClientSpec {
  readonly name: string
  readonly role: 'producer' | 'consumer'
  /** A producer ends when `client.producing` aborts, a consumer when `client.consuming` does. */
  readonly run: (client: ChaosClient) => Promise<void>
}

export const leaseSeconds = 3
export const leaseMs = leaseSeconds * 1_000
export const queueMode = '__QUEUE_MODE__'
/** High, so that faults do not use up a message's attempts: only poison becomes a dead letter. */
const retryLimitDefault = 1_000
const dedupWindowSeconds = 3_600

/** The body of `POST /api/v1/configure`. */
export function configurationOf(queue: WorkloadQueue): object {
  const { namespace, task, completedRetention, retention } = queue
  return {
    ...(namespace === undefined ? {} : { namespace }),
    ...(task === undefined ? {} : { task }),
    options: {
      leaseTime: leaseSeconds,
      ordering: queue.ordering ?? 'partition',
      retryLimit: queue.retryLimit ?? retryLimitDefault,
      retryBackoffMs: queue.retryBackoffMs ?? [0, 200],
      dedupWindowSeconds,
      ...(completedRetention === undefined
        ? {}
        : { completedRetentionSeconds: completedRetention }),
      ...(retention === undefined ? {} : { retentionSeconds: retention }),
      ...(queue.hasResults === true ? { history: 'all' } : {}),
      ...(queue.deadLetterTo === undefined ? {} : { deadLetterTo: queue.deadLetterTo }),
    },
  }
}

export function queueRecord(
  workload: string,
  queue: WorkloadQueue,
  wakeMsMax: number,
): QueueRecord {
  return {
    kind: 'queue',
    queue: queue.queue,
    workload,
    ordering: queue.ordering ?? 'partition',
    groups: queue.groups ?? [queueMode],
    retryLimit: queue.retryLimit ?? retryLimitDefault,
    dedupWindowMs: dedupWindowSeconds * 1_000,
    ...(queue.isForWakes === true ? { wakeMsMax } : {}),
    ...(queue.stage === undefined ? {} : { stage: queue.stage }),
    ...(queue.hasUniqueKeys === undefined ? {} : { hasUniqueKeys: true }),
    ...(queue.hasPriorities === undefined ? {} : { hasPriorities: true }),
    ...(queue.lettersOf === undefined ? {} : { lettersOf: queue.lettersOf }),
    ...(queue.retention === undefined ? {} : { retentionMs: queue.retention * 1_000 }),
    ...sourcesOf(queue),
  }
}

function sourcesOf({ namespace, task }: WorkloadQueue): Pick<QueueRecord, 'sources'> {
  const sources = [
    ...(namespace === undefined ? [] : [`namespace ${namespace}`]),
    ...(task === undefined ? [] : [`task ${task}`]),
  ]
  return sources.length === 0 ? {} : { sources }
}

/** `count` equal clients, numbered from 1. */
export function clients(
  count: number,
  role: ClientSpec['role'],
  run: (client: ChaosClient, number: number) => Promise<void>,
): ClientSpec[] {
  return Array.from({ length: count }, (_, i) => ({
    name: `${role === 'producer' ? 'p' : 'c'}${i + 1}`,
    role,
    run: (client) => run(client, i + 1),
  }))
}
