// Sends acknowledgements, either with the next fetch or in separate requests. Acknowledgements that arrive
// while separate requests are in flight wait and are then sent together. If all messages of a lease are
// completed, one request acknowledges the whole lease.

import { blames, isRouseError, RouseError } from '../rouse-error.ts'
import type { AckOutcome } from './consumer-calls.ts'
import { type Ending, type Held, type HeldLease, rolledBack } from './held.ts'

export interface PendingAck {
  readonly held: Held
  readonly ending: Ending
  /** Undefined if no caller waits for the result. */
  readonly onSettled: ((error: RouseError | undefined) => void) | undefined
  /** True if ackIn has acknowledged the message already, so that a refusal is the expected result. */
  readonly isCheck: boolean
  /** An earlier try got no answer. */
  afterUnknown: boolean
}

export interface AckSenderOptions {
  readonly send: (acks: readonly PendingAck[]) => Promise<readonly AckOutcome[]>
  /** Completes all messages of the lease of these acknowledgements. */
  readonly sendLease: (acks: readonly PendingAck[]) => Promise<AckOutcome>
  /** True if the lease cannot have been reassigned yet. */
  readonly isOurs: (held: Held) => boolean
  /** Called when the message has ended or the lease is lost. */
  readonly onEnded: (pending: PendingAck, error: RouseError | undefined) => void
}

/** Smaller leases are acknowledged in a list with others: a request costs more than a few list items. */
const wholeSizeMin = 8

export class AckSender {
  readonly #options: AckSenderOptions
  #loose: PendingAck[] = []
  /** Completed messages of leases that may still be completed as a whole. */
  readonly #partial = new Map<HeldLease, PendingAck[]>()
  /** The messages of wholly completed leases, one list per lease. */
  #whole: PendingAck[][] = []
  #sending: Promise<void> | undefined
  #isSendingWhole = false

  constructor(options: AckSenderOptions) {
    this.#options = options
  }

  /** A wholly completed lease waits for its request or for the answer to it. */
  get hasWhole(): boolean {
    return this.#isSendingWhole || this.#whole.length > 0
  }

  add(held: Held, ending: Ending, onSettled?: PendingAck['onSettled']): void {
    held.settled = true
    const ack = pendingOf(held, ending, onSettled, false)
    const { lease } = held
    const isPlain = ending.status === 'completed' && ending.result === undefined
    if (!isPlain || lease.size < wholeSizeMin) {
      this.#loose.push(ack)
      return
    }
    let completed = this.#partial.get(lease)
    if (completed === undefined) {
      completed = []
      this.#partial.set(lease, completed)
    }
    completed.push(ack)
    if (completed.length < lease.size) return
    this.#partial.delete(lease)
    this.#whole.push(completed)
  }

  /**
   * Sends an ending for a message that ackIn acknowledged. The server accepts the ending only if the
   * transaction of ackIn was rolled back.
   */
  check(held: Held, ending: Ending, onSettled?: PendingAck['onSettled']): void {
    this.#loose.push(pendingOf(held, ending, onSettled, true))
  }

  /**
   * Takes the acknowledgements that a fetch may carry: all but those of leases that are wholly completed. If
   * the fetch waits for messages, it may not carry those that a caller waits for, and not those of leases
   * with an ackIn: while its transaction is open, they may have to wait for its locks.
   */
  takeLoose(countMax: number, fetch: 'waits' | 'returns'): PendingAck[] {
    const loose = this.#takeAll()
    const taken: PendingAck[] = []
    for (const ack of loose) {
      const isTaken =
        taken.length < countMax &&
        (fetch === 'returns' || (ack.onSettled === undefined && !ack.held.lease.hasAckIn))
      if (isTaken) taken.push(ack)
      else this.#loose.push(ack)
    }
    return taken
  }

  /** The fetch that carried these acknowledgements failed, so they are sent again. */
  putBack(acks: readonly PendingAck[]): void {
    for (const ack of acks) ack.afterUnknown = true
    this.#loose = [...acks, ...this.#loose]
  }

  settle(acks: readonly PendingAck[], outcomes: readonly AckOutcome[]): void {
    acks.forEach((ack, i) => this.#end(ack, this.#faultOf(ack, outcomes[i])))
  }

  /** Sends pending acknowledgements unless a request is in flight. */
  send(countMax: number, onSent: () => void): void {
    if (this.#sending !== undefined || this.#isEmpty) return
    this.#sending = this.#sendNow(countMax).finally(() => {
      this.#sending = undefined
      onSent()
    })
  }

  /** Resolves when every acknowledgement is sent or abandoned. */
  async flush(countMax: number): Promise<void> {
    while (this.#sending !== undefined || !this.#isEmpty) {
      await (this.#sending ?? this.#sendNow(countMax))
    }
  }

  get #isEmpty(): boolean {
    return this.#loose.length === 0 && this.#whole.length === 0 && this.#partial.size === 0
  }

  /** Removes all acknowledgements except those of wholly completed leases. */
  #takeAll(): PendingAck[] {
    const all = this.#loose
    for (const completed of this.#partial.values()) all.push(...completed)
    this.#partial.clear()
    this.#loose = []
    return all
  }

  async #sendNow(countMax: number): Promise<void> {
    const list = this.#takeAll()
    this.#loose = list.splice(countMax)
    const whole = this.#whole
    this.#whole = []
    this.#isSendingWhole = whole.length > 0
    const { send, sendLease } = this.#options
    await Promise.all([
      this.#await(list, send),
      ...whole.map((acks) =>
        this.#await(acks, async () => {
          const outcome = await sendLease(acks)
          return acks.map(() => outcome)
        }),
      ),
    ])
    this.#isSendingWhole = false
  }

  /** A request that is refused because of one acknowledgement is repeated in halves until that one is alone. */
  async #await(acks: readonly PendingAck[], send: AckSenderOptions['send']): Promise<void> {
    if (acks.length === 0) return
    try {
      this.settle(acks, await send(acks))
    } catch (error) {
      if (acks.length > 1 && isRouseError(error) && blames.has(error.status)) {
        const half = acks.length >> 1
        await this.#await(acks.slice(0, half), this.#options.send)
        await this.#await(acks.slice(half), this.#options.send)
        return
      }
      const known = isRouseError(error)
        ? error
        : new RouseError('bad_answer', String(error), { cause: error })
      for (const ack of acks) this.#end(ack, known)
    }
  }

  /**
   * If an acknowledgement is refused after a try with an unknown outcome, and the lease cannot have been
   * reassigned, that try must have succeeded.
   */
  #faultOf(pending: PendingAck, outcome: AckOutcome | undefined): RouseError | undefined {
    const isAccepted = outcome === 'accepted' || outcome === 'dead-lettered'
    if (pending.isCheck) return isAccepted ? faultOfCheck(pending.ending) : undefined
    if (isAccepted) return undefined
    const unknown = outcome === 'unknown' || pending.afterUnknown
    if (!unknown) return leaseLost()
    return this.#options.isOurs(pending.held) ? undefined : outcomeUnknown()
  }

  #end(pending: PendingAck, error: RouseError | undefined): void {
    this.#options.onEnded(pending, error)
    pending.onSettled?.(error)
  }
}

function pendingOf(
  held: Held,
  ending: Ending,
  onSettled: PendingAck['onSettled'],
  isCheck: boolean,
): PendingAck {
  return { held, ending, onSettled, isCheck, afterUnknown: false }
}

/** Undefined if the handler threw: its error has already been reported. */
function faultOfCheck({ errorCode, error }: Ending): RouseError | undefined {
  return errorCode === rolledBack.errorCode
    ? new RouseError('ack_in_rolled_back', error ?? '')
    : undefined
}

export function outcomeUnknown(): RouseError {
  return new RouseError('outcome_unknown', 'it is unknown whether the acknowledgement took effect')
}

export function leaseLost(): RouseError {
  const text = 'lease lost: expired, reassigned or already acknowledged'
  return new RouseError('lease_lost', text, { status: 409 })
}
