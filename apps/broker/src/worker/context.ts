import type { Limits, WakeHint } from '@rouse/protocol'
import type { Coordinator, SidecarDbPool } from '@rouse/sidecar'
import type pg from 'pg'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { PayloadCipher } from '../encryption/payload-cipher.ts'
import type { Logger } from '../log.ts'
import type { DeliveryLog } from './delivery-log.ts'

/** Whether the worker still takes new clients. A field, not a function: every answer reads it. */
export interface WorkerPhase {
  readonly isDraining: boolean
}

/** What the routes of a worker work with. */
export interface BrokerContext {
  readonly config: Config
  readonly limits: Limits
  readonly clock: Clock
  readonly log: Logger
  readonly deliveryLog: DeliveryLog
  readonly pool: pg.Pool
  readonly sidecar: Pick<SidecarDbPool, 'submit'>
  /** Payloads of encrypted queues, as the database has them. */
  readonly cipher: Pick<PayloadCipher, 'open' | 'seal'>
  readonly coordinator: Pick<
    Coordinator,
    'notifyMessageAvailable' | 'notifyPartitionFree' | 'notifyOutcomeUnknown'
  >
  /** The options of a queue have changed: every node looks at it again, and reads anew what it remembers of queues. It
   * has moved if its namespace or task is another. */
  readonly tellConfigured: (hint: WakeHint, version: number, hasMoved: boolean) => void
  /** Something may fall due sooner than the timers know. */
  readonly requestDuePoll: () => void
  /** Who holds a lease, for operators. */
  readonly holder: string
  readonly newMessageId: () => string
  readonly phase: WorkerPhase
  readonly counts: { requests: number }
  /** Resolves when the node can take messages; else rejects with the reason. */
  readonly checkReady: () => Promise<void>
  readonly stats: () => Promise<Readonly<Record<string, unknown>>>
}
