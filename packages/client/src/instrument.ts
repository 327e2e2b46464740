// What observers of a client see: `@rouse/client/otel` makes spans and metrics of it. Without an observer, each
// operation costs one more function call.
import type { Ack } from './consume/consumer-calls.ts'
import type { Message } from './consume/message.ts'

/** A delivered message. In a worker the same object stands for it from its handler to its acknowledgement. */
export interface Delivered {
  readonly message: Message
}

/** A delivered message and how it ends. */
export interface Acked {
  readonly held: Delivered
  readonly ending: Pick<Ack, 'status'>
  /** Only asks whether the user's transaction has acknowledged the message: `lost` says that it has. */
  readonly isCheck?: boolean
}

/** What a client is about to do. */
export type Operation = { readonly queue: string } & (
  | { readonly kind: 'push'; readonly count: number }
  /** A pop, which may also find nothing: `run` resolves to an object with `messages`. */
  | { readonly kind: 'deliver'; readonly group: string | undefined }
  | {
      readonly kind: 'handle'
      readonly group: string | undefined
      readonly deliveries: readonly Delivered[]
    }
  /** `run` resolves to one outcome, a list of outcomes, or an object with `outcomes`. */
  | { readonly kind: 'ack'; readonly group: string | undefined; readonly acks: readonly Acked[] }
)

/** Runs an operation and returns its result. It must not change the result, and must not fail by itself. */
export type Instrument = <Result>(operation: Operation, run: () => Result) => Result

export const uninstrumented: Instrument = (_operation, run) => run()
