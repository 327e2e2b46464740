import type { Limits, WakeHint } from '@rouse/protocol'
import type { Coordinator, SidecarDbPool } from '@rouse/sidecar'
import type pg from 'pg'
import type { Access } from '../auth/access.ts'
import type { AuditLog } from '../auth/audit-log.ts'
import type { IssuerLogin } from '../auth/oidc/issuer-login.ts'
import type { OpenPolls } from '../auth/open-polls.ts'
import type { RateLimits } from '../auth/rate-limits.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { PayloadCipher } from '../encryption/payload-cipher.ts'
import type { Logger } from '../log.ts'
import type { QueueChange } from '../observe/events/node-event.ts'
import type { NodeMetrics } from '../observe/node-activity.ts'
import type { QueueList } from '../observe/queue-list.ts'
import type { SeriesRequest, SeriesValues } from '../observe/series/series-store.ts'
import type { MessageSpans } from '../observe/tracing/message-spans.ts'
import type { NodeTraces, TraceRequest } from '../observe/why/trace-record.ts'
import type { TraceRecorder } from '../observe/why/trace-recorder.ts'
import type { DeadLetterLog } from './dead-letter-log.ts'
import type { DeliveryLog } from './delivery-log.ts'
import type { EventHub } from './event-hub.ts'
import type { LeaseLookups } from './lease-lookups.ts'

/** Whether the worker is draining. A field, not a function, because every response reads it. */
export interface WorkerPhase {
  readonly isDraining: boolean
}

/** The dependencies of the routes. */
export interface BrokerContext {
  readonly config: Config
  readonly limits: Limits
  readonly access: Access
  /** Undefined if browsers cannot sign in with an OIDC issuer. */
  readonly issuerLogin: IssuerLogin | undefined
  readonly openPolls: OpenPolls
  readonly rateLimits: RateLimits
  readonly audit: AuditLog
  /** API keys have changed. Resolves when this worker has read them again, or after two seconds. */
  readonly keysChanged: () => Promise<void>
  /** The `Authorization` header of a request to another node. */
  readonly nodeAuthorization: () => string
  readonly clock: Clock
  readonly log: Logger
  /** Undefined unless the log level is debug. */
  readonly deliveryLog: DeliveryLog | undefined
  readonly deadLetterLog: DeadLetterLog
  /** Passes traces on, and exports spans if that is configured. */
  readonly spans: MessageSpans
  readonly pool: pg.Pool
  readonly sidecar: Pick<SidecarDbPool, 'submit'>
  readonly leases: LeaseLookups
  /** The queue of a partition, if this worker has seen it: costs no query. */
  readonly queueOfPartition: (partitionId: string) => string | undefined
  /** Encrypts and decrypts the payloads of encrypted queues. */
  readonly cipher: Pick<PayloadCipher, 'open' | 'seal'>
  readonly coordinator: Pick<
    Coordinator,
    'notifyMessageAvailable' | 'notifyPartitionFree' | 'notifyOutcomeUnknown'
  >
  /**
   * Announces that the options of a queue have changed. Every node then wakes its waiters of the queue and
   * refreshes what it has cached about queues. `hasMoved`: the namespace or task of the queue has changed.
   */
  readonly tellConfigured: (hint: WakeHint, version: number, hasMoved: boolean) => void
  /** Requests a due poll, because something may be due earlier than the scheduler knows. */
  readonly requestDuePoll: () => void
  /** The holder of a lease, shown to operators. */
  readonly holder: string
  readonly newMessageId: () => string
  readonly phase: WorkerPhase
  readonly counts: { requests: number }
  /** Resolves if the node can accept messages. Otherwise rejects with the reason. */
  readonly checkReady: () => Promise<void>
  /** All queues with their figures, kept in memory while a slow list is read. */
  readonly queueList: QueueList
  readonly stats: () => Promise<Readonly<Record<string, unknown>>>
  readonly metrics: () => Promise<NodeMetrics>
  /** The past of this node. */
  readonly series: (request: SeriesRequest) => Promise<SeriesValues>
  /** Records the timings of some messages. */
  readonly traces: TraceRecorder
  /** What this node remembers about a message. */
  readonly tracesOf: (request: TraceRequest) => Promise<NodeTraces>
  /** The streams of events that this worker serves. */
  readonly events: EventHub
  /** Reports that someone changed a queue. */
  readonly queueChanged: (queue: string, change: QueueChange, by: string) => void
}
