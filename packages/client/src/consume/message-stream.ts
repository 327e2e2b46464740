// Delivers messages one at a time to a `for await` loop. It uses a worker with one handler: the handler
// passes its message to the loop and returns when the loop requests the next one. Leaving the loop early
// fails the attempt, unless the message was ended before. The loop ends when its worker stops, for example by
// `close()`.

import { RouseError } from '../rouse-error.ts'
import type { Context } from './context.ts'
import type { Job } from './job.ts'
import type { Message } from './message.ts'
import type { Worker } from './worker.ts'

/** A message with the actions of its context. */
export type StreamedMessage<Data, Queues> = Message<Data> & Context<Queues>

/** The messages of `for await (const message of queue.messages())`. */
export type MessageStream<Data, Queues> = AsyncIterableIterator<
  StreamedMessage<Data, Queues>,
  undefined
>

/** A message that is offered to the loop or that the loop has taken. */
interface Offer<Data, Queues> {
  readonly job: Job
  readonly message: StreamedMessage<Data, Queues>
  /** Ends the handler and acknowledges the message, unless the message has already ended. */
  readonly done: () => void
  /** Ends the handler and fails the attempt, unless the message has already ended. */
  readonly fail: (error: RouseError) => void
}

/** Starts the worker of the loop. `onStopping` is called when any caller begins to stop the worker. */
export type StartStream = (handle: (job: Job) => unknown, onStopping: () => void) => Worker

export function streamMessages<Data, Queues>(start: StartStream): MessageStream<Data, Queues> {
  let offered: Offer<Data, Queues> | undefined
  let current: Offer<Data, Queues> | undefined
  let asked: (() => void) | undefined
  let ended = false

  const worker = start(
    (job) =>
      new Promise<void>((resolve, reject) => {
        offered = { job, message: withContext(job, settle), done: resolve, fail: reject }
        job.signal.addEventListener('abort', () => {
          if (offered?.job === job) offered = undefined
          reject(job.signal.reason)
        })
        asked?.()
      }),
    () => {
      ended = true
      // A message that the loop has not taken is released at once. If the loop has taken a message, it has
      // until the timeout of the stop to finish it.
      offered?.job.abort(new RouseError('closed', 'the worker is stopping'))
      settle()
      asked?.()
    },
  )

  /** A stop does not wait for a loop whose message has ended. */
  function settle(): void {
    if (ended && current !== undefined && current.job.open.length === 0) current.done()
  }

  /**
   * The loop was left early. An iterator cannot distinguish throw, break and return, so leaving the loop
   * counts as a failure.
   */
  async function leave(): Promise<IteratorReturnResult<undefined>> {
    if (current !== undefined && current.job.open.length > 0) current.fail(loopLeft())
    else current?.done()
    current = undefined
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
    return: leave,
    async throw(error: unknown) {
      await leave()
      throw error
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

function loopLeft(): RouseError {
  return new RouseError('loop_left', 'the loop was left before its message was ended')
}

function withContext<Data, Queues>(job: Job, onEnded: () => void): StreamedMessage<Data, Queues> {
  const message = job.messages[0]?.message as Message<Data>
  const ended = (ending: Promise<void>): Promise<void> => ending.finally(onEnded)
  return {
    ...message,
    signal: job.signal,
    ack: (options) => ended(job.ack(options)),
    ackIn: (executor) => ended(job.ackIn(executor)),
    retry: (options) => ended(job.retry(options)),
    snooze: (delay) => ended(job.snooze(delay)),
    deadLetter: (reason) => ended(job.deadLetter(reason)),
    progress: (value) => job.progress(value),
  }
}
