// The messages between a primary and its workers. All messages of one tick are sent together.
//
//   worker → primary   ready · waiting · requestGrant · taken · release · available · free · configured ·
//                      scheduled · pollDue · blocked · expires · hintsLost · outcomeUnknown · workerStats · askStats ·
//                      askSeries · askKeys · keysUsed · limitUse · askIssuer · queueChanged · watchEvents · askEvents ·
//                      askTraces
//   primary → worker   grant · hintsWanted · configured · drain · reloadTls · stats · metrics · series · keys ·
//                      limitUse · issuer · events · pastEvents · traces · report · ackedElsewhere
import type { GrantOutcome, WaitGroup, WakeHint } from '@rouse/protocol'
import type { Grant, SidecarStats } from '@rouse/sidecar'
import type { KeyTable } from '@rouse/storage'
import type { IssuerDocument } from './auth/oidc/issuer-document.ts'
import type { LimitUse } from './auth/rate-limits.ts'
import type { NodeEvent, PastEvents, QueueChange } from './observe/events/node-event.ts'
import type { NodeMetrics } from './observe/node-activity.ts'
import type { SeriesRequest, SeriesValues } from './observe/series/series-store.ts'
import type { AckRecord, NodeTraces, TraceRequest } from './observe/why/trace-record.ts'
import type { Counted } from './observe/worker-observer.ts'

export type WorkerMessage =
  | { readonly type: 'ready'; readonly url: string }
  | { readonly type: 'waiting'; readonly group: WaitGroup; readonly count: number }
  | { readonly type: 'requestGrant'; readonly group: WaitGroup; readonly unlessEmpty?: boolean }
  | { readonly type: 'taken'; readonly grant: Grant }
  | {
      readonly type: 'release'
      readonly grant: Grant
      readonly outcome: GrantOutcome
      readonly found: number
    }
  | { readonly type: 'available'; readonly woken: readonly WakeHint[] }
  | { readonly type: 'free'; readonly woken: readonly WakeHint[] }
  /** The options of a queue have a new version. `hasMoved`: its namespace or task changed. */
  | {
      readonly type: 'configured'
      readonly hint: WakeHint
      readonly version: number
      readonly hasMoved: boolean
    }
  /** A call scheduled something that will be due at a known time or after a known delay. */
  | { readonly type: 'scheduled'; readonly queue: string; readonly due: Due }
  /** A call may have scheduled something that will be due at a time that the worker does not know. */
  | { readonly type: 'pollDue' }
  /** A rate withholds messages until this time of the database's clock. */
  | { readonly type: 'blocked'; readonly untilMs: number }
  /** A lease was shortened: it expires at this time of the database's clock. */
  | { readonly type: 'expires'; readonly atMs: number }
  /** The channel was full and hints were dropped: any queue may have messages. */
  | { readonly type: 'hintsLost' }
  /** A connection was lost before the database answered. The write may be committed now, later or never. */
  | { readonly type: 'outcomeUnknown' }
  /** `reply`: the primary asked for it. */
  | { readonly type: 'workerStats'; readonly stats: WorkerReport; readonly reply?: number }
  | { readonly type: 'askStats'; readonly id: number; readonly of: 'node' | 'metrics' }
  | { readonly type: 'askSeries'; readonly id: number; readonly request: SeriesRequest }
  /** Asks for the API keys. `haveChanged`: as they are now, not as they were read last. */
  | { readonly type: 'askKeys'; readonly id: number; readonly haveChanged: boolean }
  | { readonly type: 'keysUsed'; readonly ids: readonly string[] }
  /** What this worker has admitted for keys with limits. */
  | { readonly type: 'limitUse'; readonly uses: readonly LimitUse[] }
  /** Someone changed a queue through this worker. */
  | {
      readonly type: 'queueChanged'
      readonly queue: string
      readonly change: QueueChange
      readonly by: string
    }
  /** Whether this worker has streams of events, and whether any of them wants wake-ups. */
  | { readonly type: 'watchEvents'; readonly events: boolean; readonly wakes: boolean }
  | { readonly type: 'askTraces'; readonly id: number; readonly request: TraceRequest }
  | { readonly type: 'askEvents'; readonly id: number; readonly sinceMs: number }
  /** Asks for the keys of the OIDC issuer. `isUnknownKey`: a token names one that is not among them. */
  | { readonly type: 'askIssuer'; readonly id: number; readonly isUnknownKey: boolean }

/** A time by the database's clock, or a delay from now. */
export type Due = { readonly atMs: number } | { readonly inMs: number }

export interface WorkerStats extends SidecarStats {
  readonly pool: {
    readonly total: number
    readonly idle: number
    readonly queued: number
    /** `limit` is the current limit, as the server allows it; `max` is the configured one. */
    readonly limit: number
    readonly max: number
  }
  readonly requests: number
  /** Exported spans, and those that were dropped. */
  readonly spans: { readonly exported: number; readonly dropped: number }
  readonly queriesPerSecond: Readonly<Record<string, number>>
}

/** The stats of a worker, and what it counted since its last report. */
export interface WorkerReport extends WorkerStats {
  readonly counted: Counted
}

export type PrimaryMessage =
  | { readonly type: 'grant'; readonly grant: Grant }
  /** Whether any node waits for messages. Without that, workers keep their hints. */
  | { readonly type: 'hintsWanted'; readonly areWanted: boolean }
  /** Queue options have changed, or may have changed, on some node. The worker refreshes its caches. */
  | { readonly type: 'configured' }
  | { readonly type: 'drain' }
  /** The files of TLS may have changed. */
  | { readonly type: 'reloadTls' }
  /**
   * The API keys, as they were read `ageMs` ago. Without a table they have not changed. `id`: the request that this
   * answers.
   */
  | {
      readonly type: 'keys'
      readonly table?: KeyTable
      readonly ageMs: number
      /** The live nodes of the cluster, which share the limits of keys. */
      readonly nodes: number
      readonly id?: number
    }
  /** What another worker of the node has admitted. */
  | { readonly type: 'limitUse'; readonly workerId: number; readonly uses: readonly LimitUse[] }
  /** What the OIDC issuer publishes; undefined if it could not be read yet. `id`: the request that this answers. */
  | { readonly type: 'issuer'; readonly document: IssuerDocument | undefined; readonly id?: number }
  | {
      readonly type: 'stats'
      readonly id: number
      readonly stats: Readonly<Record<string, unknown>>
    }
  | { readonly type: 'metrics'; readonly id: number; readonly metrics: NodeMetrics }
  | { readonly type: 'series'; readonly id: number; readonly series: SeriesValues }
  | { readonly type: 'traces'; readonly id: number; readonly traces: NodeTraces }
  /** Asks for the stats now, with the open leases of this partition. */
  | { readonly type: 'report'; readonly id: number; readonly partitionId: string | null }
  /** Acks that reached other workers of the node. */
  | { readonly type: 'ackedElsewhere'; readonly acks: readonly AckRecord[] }
  | { readonly type: 'events'; readonly events: readonly NodeEvent[] }
  | { readonly type: 'pastEvents'; readonly id: number; readonly past: PastEvents }

/** One direction of a channel. */
export interface Outbox<Message> {
  post(message: Message): void
}

export interface OutboxOptions<Message> {
  /**
   * Sends one array, then calls `done`. If the other process has exited, throws or passes an error to `done`.
   */
  readonly send: (batch: readonly Message[], done: (error: Error | null) => void) => void
  readonly schedule?: (flush: () => void) => void
  /** Which messages may be dropped when the channel is full, and the message that replaces them. */
  readonly droppable?: (message: Message) => boolean
  readonly dropped?: Message
  readonly messagesMax?: number
}

export const outboxMessagesMax = 50_000

/**
 * Collects messages until the end of the tick. While one send is in progress, new messages wait in the next
 * batch. A slow reader therefore causes larger batches, not more pending sends.
 */
export function createOutbox<Message>(options: OutboxOptions<Message>): Outbox<Message> {
  const { send, droppable, dropped, messagesMax = outboxMessagesMax } = options
  const schedule = options.schedule ?? ((flush) => void setImmediate(flush))
  let waiting: Message[] = []
  let scheduled = false
  let sending = false
  let lost = false

  function flush(): void {
    scheduled = false
    if (sending || waiting.length === 0) return
    const batch = waiting
    waiting = []
    if (lost && dropped !== undefined) batch.push(dropped)
    lost = false
    sending = true
    send(batch, () => {
      // An error means that the other process has exited. The disconnect event handles that.
      sending = false
      if (waiting.length > 0) flush()
    })
  }

  return {
    post(message) {
      if (waiting.length >= messagesMax && droppable?.(message) === true) {
        lost = true
        return
      }
      waiting.push(message)
      if (scheduled || sending) return
      scheduled = true
      schedule(flush)
    },
  }
}

/** Accepts the arrays that an outbox sends. Any other message on the channel is ignored. */
export function readBatch<Message>(value: unknown): readonly Message[] {
  return Array.isArray(value) ? (value as Message[]) : []
}
