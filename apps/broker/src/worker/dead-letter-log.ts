import type { Logger } from '../log.ts'

export interface LoggedDeadLetter {
  readonly requestId: string
  readonly principal: string
  readonly leaseId: string
  readonly partitionId?: string | undefined
  readonly seq?: number | undefined
  readonly transactionId?: string | undefined
  readonly status: string
  readonly errorCode?: string | undefined
}

/** A consumer that fails every message must not fill the log. */
const perSecondMax = 20

/** Logs the messages that acks made dead letters, a limited number a second. */
export class DeadLetterLog {
  readonly #log: Logger
  readonly #nowMs: () => number
  #second = 0
  #count = 0
  #leftOut = 0

  constructor(log: Logger, nowMs: () => number) {
    this.#log = log
    this.#nowMs = nowMs
  }

  add(letter: LoggedDeadLetter): void {
    const second = Math.floor(this.#nowMs() / 1_000)
    if (second !== this.#second) this.#count = 0
    this.#second = second
    this.#count += 1
    if (this.#count > perSecondMax) {
      this.#leftOut += 1
      return
    }
    const leftOut = this.#leftOut === 0 ? {} : { leftOut: this.#leftOut }
    this.#leftOut = 0
    this.#log.info(
      { event: 'dead_letter', ...letter, ...leftOut },
      'a message became a dead letter',
    )
  }
}
