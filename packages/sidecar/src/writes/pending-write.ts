// A write that somebody waits for, but not for ever.
//
//   waiting    in line, or between two tries. At its deadline it is refused, and never sent.
//   sent       PostgreSQL has it. At its deadline its outcome is unknown: what commits later commits.
//   answered   by its result, its failure or its deadline, whichever came first; the others change nothing.
//
// PostgreSQL itself sets no limit: a commit whose synchronous standby is lost waits until it is back, and to cancel it
// would only hide that it is not safe.
import { SidecarError } from '../sidecar-error.ts'

export class PendingWrite<I, O> {
  readonly input: I
  /** What it is answered if it is still waiting at its deadline. */
  lateCode: 'database_unavailable' | 'partition_locked' = 'database_unavailable'
  readonly #resolve: (output: O) => void
  readonly #reject: (error: unknown) => void
  #state: 'waiting' | 'sent' | 'answered' = 'waiting'
  #deadline: NodeJS.Timeout | undefined

  constructor(input: I, resolve: (output: O) => void, reject: (error: unknown) => void) {
    this.input = input
    this.#resolve = resolve
    this.#reject = reject
  }

  /** True: it goes out now. False: it was answered meanwhile, and must not. */
  send(): boolean {
    if (this.#state === 'answered') return false
    this.#state = 'sent'
    return true
  }

  /** The try left nothing behind. */
  undone(): void {
    if (this.#state === 'sent') this.#state = 'waiting'
  }

  resolve(output: O): void {
    if (this.#answer()) this.#resolve(output)
  }

  reject(error: unknown): void {
    if (this.#answer()) this.#reject(error)
  }

  /** Calls `onLate` if nothing has answered it by then. */
  answerWithin(timeoutMs: number, onLate: () => void): void {
    if (this.#state === 'answered') return
    // After a stall of our own, timers run before sockets are read: an answer that has come already goes first.
    this.#deadline = setTimeout(() => {
      setImmediate(() => {
        if (this.#state === 'answered') return
        this.reject(late(this.#state, this.lateCode, timeoutMs))
        onLate()
      })
    }, timeoutMs)
  }

  #answer(): boolean {
    if (this.#state === 'answered') return false
    this.#state = 'answered'
    clearTimeout(this.#deadline)
    return true
  }
}

function late(
  state: 'waiting' | 'sent',
  waitingCode: 'database_unavailable' | 'partition_locked',
  timeoutMs: number,
): SidecarError {
  return state === 'sent'
    ? new SidecarError('outcome_unknown', `PostgreSQL did not confirm it within ${timeoutMs} ms`)
    : new SidecarError(waitingCode, `PostgreSQL took no more within ${timeoutMs} ms`)
}
