// Messages one after the other, for `for await`. A worker with one handler stands behind it: the handler gives its message
// to the loop and ends when the loop asks for the next.
import type { Context } from './context.ts'
import type { Job } from './job.ts'
import type { Message } from './message.ts'
import type { Worker } from './worker.ts'

/** A message with what may be done about it. */
export type StreamedMessage<Data, Queues> = Message<Data> & Context<Queues>

export type MessageStream<Data, Queues> = AsyncIterableIterator<
  StreamedMessage<Data, Queues>,
  undefined
>

interface Offer<Data, Queues> {
  readonly message: StreamedMessage<Data, Queues>
  /** Ends the handler: the message is acknowledged, unless its end was decided. */
  readonly done: () => void
}

export function streamMessages<Data, Queues>(
  start: (handle: (job: Job) => unknown) => Worker,
): MessageStream<Data, Queues> {
  let offered: Offer<Data, Queues> | undefined
  let current: Offer<Data, Queues> | undefined
  let asked: (() => void) | undefined
  let ended = false

  const worker = start(
    (job) =>
      new Promise<void>((resolve, reject) => {
        offered = { message: withContext(job), done: resolve }
        job.signal.addEventListener('abort', () => {
          offered = undefined
          reject(job.signal.reason)
        })
        asked?.()
      }),
  )

  async function end(): Promise<IteratorReturnResult<undefined>> {
    ended = true
    asked?.()
    await worker.stop({ timeout: 0 })
    return { done: true, value: undefined }
  }

  return {
    async next() {
      current?.done()
      current = undefined
      while (offered === undefined && !ended) {
        await new Promise<void>((resolve) => {
          asked = resolve
        })
      }
      if (offered === undefined || ended) return { done: true, value: undefined }
      current = offered
      offered = undefined
      return { done: false, value: current.message }
    },
    return: end,
    async throw(error: unknown) {
      await end()
      throw error
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

function withContext<Data, Queues>(job: Job): StreamedMessage<Data, Queues> {
  const message = job.messages[0]?.message as Message<Data>
  return {
    ...message,
    signal: job.signal,
    ack: (options) => job.ack(options),
    retry: (options) => job.retry(options),
    deadLetter: (reason) => job.deadLetter(reason),
  }
}
