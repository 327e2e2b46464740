import type { Duration } from '../duration.ts'
import type { PushTo } from '../push/push-item.ts'
import type { Message } from './message.ts'

/** Runs SQL in a transaction of yours: a client of `pg`, or anything with the same `query`. */
export interface SqlExecutor {
  query(text: string, values: unknown[]): PromiseLike<unknown>
}

/** What a handler may do beside returning (acknowledge) and throwing (retry by the queue's ladder). */
export interface Context<Queues> {
  /** Aborts when the lease is lost, or when the worker stops and has waited long enough. */
  readonly signal: AbortSignal
  /** Acknowledges now; with `push`, in one transaction with these messages. */
  ack(options?: { readonly push?: readonly PushTo<Queues>[] | undefined }): Promise<void>
  /**
   * Acknowledges inside your own transaction, by `rouse.ack_in`: the acknowledgement counts when that commits. Where it
   * is rolled back, the attempt ends as failed. Rejects with `lease_lost` if it is too late; then roll back.
   */
  ackIn(executor: SqlExecutor): Promise<void>
  /** Gives the message back, without charging the attempt. */
  retry(options?: { readonly delay?: Duration | undefined }): Promise<void>
  /** It will never work: puts the message among the dead letters. */
  deadLetter(reason?: string): Promise<void>
}

/** The same for many messages: for those that are named, or else for all whose end is still open. */
export interface BatchContext<Queues> {
  readonly signal: AbortSignal
  ack(options?: {
    readonly messages?: readonly Message[] | undefined
    readonly push?: readonly PushTo<Queues>[] | undefined
  }): Promise<void>
  ackIn(
    executor: SqlExecutor,
    options?: { readonly messages?: readonly Message[] | undefined },
  ): Promise<void>
  retry(options?: {
    readonly messages?: readonly Message[] | undefined
    readonly delay?: Duration | undefined
  }): Promise<void>
  deadLetter(
    reason?: string,
    options?: { readonly messages?: readonly Message[] | undefined },
  ): Promise<void>
}

export type Handler<Data, Queues> = (message: Message<Data>, context: Context<Queues>) => unknown

export type BatchHandler<Data, Queues> = (
  messages: readonly Message<Data>[],
  context: BatchContext<Queues>,
) => unknown
