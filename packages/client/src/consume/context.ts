import type { Duration } from '../duration.ts'
import type { PushTo } from '../push/push-item.ts'
import type { SqlExecutor } from '../sql/executor.ts'
import type { Message } from './message.ts'

/** What a handler can do besides returning (acknowledge) and throwing (retry after the queue's delay). */
export interface Context<Queues> {
  /** Aborts when the lease is lost, or when the worker stops and its timeout has passed. */
  readonly signal: AbortSignal
  /**
   * Acknowledges now and, in the same transaction, pushes the messages of `push`. `result` is kept with the message:
   * `rouse.messages.get` and `wait` show it. It is JSON of at most 64 KiB.
   */
  ack(options?: {
    readonly push?: readonly PushTo<Queues>[] | undefined
    readonly result?: unknown
  }): Promise<void>
  /**
   * Acknowledges inside your own transaction, with `rouse.ack_in`. The acknowledgement takes effect on
   * commit; on rollback the attempt fails. Rejects with `lease_lost` if the lease is lost; in that case roll
   * back.
   */
  ackIn(executor: SqlExecutor): Promise<void>
  /** Returns the message to the queue without charging the attempt. */
  retry(options?: { readonly delay?: Duration | undefined }): Promise<void>
  /** Delivers the message again after the delay, without charging the attempt. */
  snooze(delay: Duration): Promise<void>
  /** Makes the message a dead letter, because a retry would not help. */
  deadLetter(reason?: string): Promise<void>
  /**
   * Reports how far the handler is: JSON of at most 4 KiB, which replaces the last report. `rouse.messages.get`
   * shows it. Rejects with `lease_lost` if the lease is lost.
   */
  progress(value: unknown): Promise<void>
}

/** Like `Context`, for a batch. Each action applies to `messages`; by default, to all that have not ended. */
export interface BatchContext<Queues> {
  readonly signal: AbortSignal
  ack(options?: {
    readonly messages?: readonly Message[] | undefined
    readonly push?: readonly PushTo<Queues>[] | undefined
    /** The result of each of the messages. */
    readonly result?: unknown
  }): Promise<void>
  ackIn(
    executor: SqlExecutor,
    options?: { readonly messages?: readonly Message[] | undefined },
  ): Promise<void>
  retry(options?: {
    readonly messages?: readonly Message[] | undefined
    readonly delay?: Duration | undefined
  }): Promise<void>
  snooze(
    delay: Duration,
    options?: { readonly messages?: readonly Message[] | undefined },
  ): Promise<void>
  deadLetter(
    reason?: string,
    options?: { readonly messages?: readonly Message[] | undefined },
  ): Promise<void>
}

/**
 * Handles one message: returning acknowledges, throwing fails the attempt. What it returns is kept as the result, if
 * the worker keeps results (`WorkOptions.results`).
 */
export type Handler<Data, Queues> = (message: Message<Data>, context: Context<Queues>) => unknown

/** Handles several messages at once. */
export type BatchHandler<Data, Queues> = (
  messages: readonly Message<Data>[],
  context: BatchContext<Queues>,
) => unknown
