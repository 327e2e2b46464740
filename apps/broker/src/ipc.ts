// All that a primary and its workers say to each other, and how: messages of one tick leave in one send.
//
//   worker → primary   ready · waiting · requestGrant · taken · release · available · free · configured · scheduled · look ·
//                      hintsLost · outcomeUnknown · figures · askStats
//   primary → worker   grant · configured · drain · stats
import type { WaitGroup, WakeHint } from '@rouse/protocol'
import type { Grant, GrantOutcome, SidecarStats } from '@rouse/sidecar'

export type WorkerMessage =
  | { readonly type: 'ready'; readonly url: string }
  | { readonly type: 'waiting'; readonly group: WaitGroup; readonly count: number }
  | { readonly type: 'requestGrant'; readonly group: WaitGroup }
  | { readonly type: 'taken'; readonly grant: Grant }
  | {
      readonly type: 'release'
      readonly grant: Grant
      readonly outcome: GrantOutcome
      readonly found: number
    }
  | { readonly type: 'available'; readonly woken: readonly WakeHint[] }
  | { readonly type: 'free'; readonly woken: readonly WakeHint[] }
  /** The options of a queue have a new version; it moved if its namespace or task did. */
  | {
      readonly type: 'configured'
      readonly hint: WakeHint
      readonly version: number
      readonly hasMoved: boolean
    }
  /** A call made something fall due: then, or in so many ms from now. */
  | { readonly type: 'scheduled'; readonly queue: string; readonly due: Due }
  /** A call may have made something fall due, nobody here knows when. */
  | { readonly type: 'look' }
  /** More hints than the channel may hold: anything may have become deliverable. */
  | { readonly type: 'hintsLost' }
  /** A connection was lost before the answer: what was written may be there, or yet come. */
  | { readonly type: 'outcomeUnknown' }
  | { readonly type: 'figures'; readonly figures: WorkerFigures }
  | { readonly type: 'askStats'; readonly id: number }

/** A time by the database's clock, or one that is counted from now. */
export type Due = { readonly atMs: number } | { readonly inMs: number }

export interface WorkerFigures extends SidecarStats {
  readonly pool: {
    readonly total: number
    readonly idle: number
    readonly queued: number
    /** How many it may have: now, by what the server gives, and as configured. */
    readonly limit: number
    readonly max: number
  }
  readonly requests: number
  readonly queriesPerSecond: Readonly<Record<string, number>>
}

export type PrimaryMessage =
  | { readonly type: 'grant'; readonly grant: Grant }
  /** Options of queues have changed, here or elsewhere, or may have: whatever is remembered of any is read anew. */
  | { readonly type: 'configured' }
  | { readonly type: 'drain' }
  | {
      readonly type: 'stats'
      readonly id: number
      readonly stats: Readonly<Record<string, unknown>>
    }

/** One direction of a channel. */
export interface Outbox<Message> {
  post(message: Message): void
}

export interface OutboxOptions<Message> {
  /** Sends one array; the callback comes when it has left. Throws or reports an error when the other side is gone. */
  readonly send: (batch: readonly Message[], done: (error: Error | null) => void) => void
  readonly schedule?: (flush: () => void) => void
  /** What may be dropped when the channel is full, and what is said in place of all that was. */
  readonly droppable?: (message: Message) => boolean
  readonly dropped?: Message
  readonly messagesMax?: number
}

export const outboxMessagesMax = 50_000

/**
 * Collects messages until the end of the tick. While a send is under way the next ones wait for it, so a slow reader
 * makes batches larger and not memory.
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
      // An error means that the other side has ended; its loss is noticed by the disconnect event.
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

/** What one side may hear: arrays as the outbox sends them; anything else on the channel is not ours. */
export function readBatch<Message>(value: unknown): readonly Message[] {
  return Array.isArray(value) ? (value as Message[]) : []
}
