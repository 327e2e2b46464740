// Endings that are to be told to the server. They leave with the next fetch, or together in a request of their own
// as soon as the one before is answered.
import type { Ack, AckOutcome } from './consumer-calls.ts'
import { ackOf, type Ending, type Held } from './held.ts'
import { RouseError } from './rouse-error.ts'

export interface PendingAck {
  readonly held: Held
  readonly ack: Ack
  /** Undefined where nobody waits for it. */
  readonly told: ((error: RouseError | undefined) => void) | undefined
  /** A try to tell it got no answer. */
  afterUnknown: boolean
}

export interface AckDeskOptions {
  readonly send: (acks: readonly Ack[]) => Promise<readonly AckOutcome[]>
  /** Whether nobody else can have ended it. */
  readonly isOurs: (held: Held) => boolean
  /** It has ended, or is out of our hands. */
  readonly onEnded: (held: Held, error: RouseError | undefined) => void
}

export class AckDesk {
  readonly #options: AckDeskOptions
  #pending: PendingAck[] = []
  #sending: Promise<void> | undefined

  constructor(options: AckDeskOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#pending.length
  }

  add(held: Held, ending: Ending, told?: PendingAck['told']): void {
    held.settled = true
    this.#pending.push({ held, ack: ackOf(held, ending), told, afterUnknown: false })
  }

  take(countMax: number): PendingAck[] {
    if (this.#pending.length <= countMax) {
      const all = this.#pending
      this.#pending = []
      return all
    }
    return this.#pending.splice(0, countMax)
  }

  /** The request they rode on failed; they go another way. */
  putBack(acks: readonly PendingAck[]): void {
    for (const ack of acks) ack.afterUnknown = true
    this.#pending = [...acks, ...this.#pending]
  }

  told(acks: readonly PendingAck[], outcomes: readonly AckOutcome[]): void {
    acks.forEach((ack, i) => this.#end(ack, this.#faultOf(ack, outcomes[i])))
  }

  /** Sends what is pending, one request at a time. */
  send(countMax: number, onSent: () => void): void {
    if (this.#sending !== undefined || this.#pending.length === 0) return
    this.#sending = this.#sendNow(this.take(countMax)).finally(() => {
      this.#sending = undefined
      onSent()
    })
  }

  /** Resolves when everything has been told or given up. */
  async flush(countMax: number): Promise<void> {
    while (this.#sending !== undefined || this.#pending.length > 0) {
      await (this.#sending ?? this.#sendNow(this.take(countMax)))
    }
  }

  async #sendNow(acks: readonly PendingAck[]): Promise<void> {
    try {
      this.told(acks, await this.#options.send(acks.map(({ ack }) => ack)))
    } catch (error) {
      const known =
        error instanceof RouseError
          ? error
          : new RouseError('bad_answer', String(error), { cause: error })
      for (const ack of acks) this.#end(ack, known)
    }
  }

  /** Refused after a try of unknown outcome: while the lease is ours, that try must have been the one. */
  #faultOf(pending: PendingAck, outcome: AckOutcome | undefined): RouseError | undefined {
    if (outcome === 'accepted' || outcome === 'dead-lettered') return undefined
    const unknown = outcome === 'unknown' || pending.afterUnknown
    if (!unknown) return leaseLost()
    if (this.#options.isOurs(pending.held)) return undefined
    return new RouseError('outcome_unknown', 'it is unknown whether the acknowledgement counted')
  }

  #end({ held, told }: PendingAck, error: RouseError | undefined): void {
    this.#options.onEnded(held, error)
    told?.(error)
  }
}

export function leaseLost(): RouseError {
  const text = 'the lease is lost: the message was given to somebody else, or ended'
  return new RouseError('lease_lost', text, { status: 409 })
}
