// Sends acknowledgements, either with the next fetch or in separate requests. Acknowledgements that arrive
// while separate requests are in flight wait and are then sent together. If all messages of a lease are
// completed, one request acknowledges the whole lease.

import { RouseError } from '../rouse-error.ts'
import type { Ack, AckOutcome } from './consumer-calls.ts'
import { ackOf, type Ending, type Held, type HeldLease, rolledBack } from './held.ts'

export interface PendingAck {
  readonly held: Held
  readonly ack: Ack
  /** Undefined if no caller waits for the result. */
  readonly onSettled: ((error: RouseError | undefined) => void) | undefined
  /** True if ackIn has acknowledged the message already, so that a refusal is the expected result. */
  readonly isCheck: boolean
  /** An earlier try got no answer. */
  afterUnknown: boolean
}

export interface AckSenderOptions {
  readonly send: (acks: readonly Ack[]) => Promise<readonly AckOutcome[]>
  /** Completes all messages of a lease. */
  readonly sendLease: (lease: HeldLease) => Promise<AckOutcome>
  /** True if the lease cannot have been reassigned yet. */
  readonly isOurs: (held: Held) => boolean
  /** Called when the message has ended or the lease is lost. */
  readonly onEnded: (pending: PendingAck, error: RouseError | undefined) => void
}

/** Smaller leases are acknowledged in a list with others: a request costs more than a few list items. */
const wholeSizeMin = 8

export class AckSender {
  readonly #options: AckSenderOptions
  #pending: PendingAck[] = []
  #sending: Promise<void> | undefined

  constructor(options: AckSenderOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#pending.length
  }

  add(held: Held, ending: Ending, onSettled?: PendingAck['onSettled']): void {
    held.settled = true
    const ack = ackOf(held, ending)
    this.#pending.push({ held, ack, onSettled, isCheck: false, afterUnknown: false })
  }

  /**
   * Sends an ending for a message that ackIn acknowledged. The server accepts the ending only if the
   * transaction of ackIn was rolled back.
   */
  check(held: Held, ending: Ending, onSettled?: PendingAck['onSettled']): void {
    const ack = ackOf(held, ending)
    this.#pending.push({ held, ack, onSettled, isCheck: true, afterUnknown: false })
  }

  /**
   * Takes the acknowledgements that a fetch may carry: all but those of leases that are wholly completed.
   */
  takeLoose(countMax: number): PendingAck[] {
    const { whole, loose } = sort(this.#pending)
    this.#pending = [...loose.slice(countMax), ...whole.flat()]
    return loose.slice(0, countMax)
  }

  /** The fetch that carried these acknowledgements failed, so they are sent again. */
  putBack(acks: readonly PendingAck[]): void {
    for (const ack of acks) ack.afterUnknown = true
    this.#pending = [...acks, ...this.#pending]
  }

  settle(acks: readonly PendingAck[], outcomes: readonly AckOutcome[]): void {
    acks.forEach((ack, i) => this.#end(ack, this.#faultOf(ack, outcomes[i])))
  }

  /** Sends pending acknowledgements unless a request is in flight. */
  send(countMax: number, onSent: () => void): void {
    if (this.#sending !== undefined || this.#pending.length === 0) return
    this.#sending = this.#sendNow(countMax).finally(() => {
      this.#sending = undefined
      onSent()
    })
  }

  /** Resolves when every acknowledgement is sent or abandoned. */
  async flush(countMax: number): Promise<void> {
    while (this.#sending !== undefined || this.#pending.length > 0) {
      await (this.#sending ?? this.#sendNow(countMax))
    }
  }

  async #sendNow(countMax: number): Promise<void> {
    const { whole, loose } = sort(this.#pending)
    const list = loose.slice(0, countMax)
    this.#pending = loose.slice(countMax)
    const { send, sendLease } = this.#options
    await Promise.all([
      this.#await(list, () => send(list.map(({ ack }) => ack))),
      ...whole.map((acks) =>
        this.#await(acks, async () => {
          const outcome = await sendLease((acks[0] as PendingAck).held.lease)
          return acks.map(() => outcome)
        }),
      ),
    ])
  }

  async #await(
    acks: readonly PendingAck[],
    send: () => Promise<readonly AckOutcome[]>,
  ): Promise<void> {
    if (acks.length === 0) return
    try {
      this.settle(acks, await send())
    } catch (error) {
      const known =
        error instanceof RouseError
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
    if (pending.isCheck) return isAccepted ? faultOfCheck(pending.ack) : undefined
    if (isAccepted) return undefined
    const unknown = outcome === 'unknown' || pending.afterUnknown
    if (!unknown) return leaseLost()
    if (this.#options.isOurs(pending.held)) return undefined
    return new RouseError(
      'outcome_unknown',
      'it is unknown whether the acknowledgement took effect',
    )
  }

  #end(pending: PendingAck, error: RouseError | undefined): void {
    this.#options.onEnded(pending, error)
    pending.onSettled?.(error)
  }
}

/** Undefined if the handler threw: its error has already been reported. */
function faultOfCheck({ errorCode, error }: Ack): RouseError | undefined {
  return errorCode === rolledBack.errorCode
    ? new RouseError('ack_in_rolled_back', error ?? '')
    : undefined
}

/**
 * `whole`: the acknowledgements of leases of which all messages are completed and none was acknowledged
 * before, one list per lease. `loose`: all others.
 */
function sort(pending: readonly PendingAck[]): { whole: PendingAck[][]; loose: PendingAck[] } {
  const completed = new Map<HeldLease, PendingAck[]>()
  const loose: PendingAck[] = []
  for (const ack of pending) {
    const { lease } = ack.held
    if (ack.ack.status !== 'completed' || lease.size < wholeSizeMin) {
      loose.push(ack)
      continue
    }
    const others = completed.get(lease)
    if (others === undefined) completed.set(lease, [ack])
    else others.push(ack)
  }
  const whole: PendingAck[][] = []
  for (const [lease, acks] of completed) {
    if (acks.length === lease.size) whole.push(acks)
    else loose.push(...acks)
  }
  return { whole, loose }
}

export function leaseLost(cause?: unknown): RouseError {
  const text = 'lease lost: expired, reassigned or already acknowledged'
  return new RouseError('lease_lost', text, { status: 409, cause })
}
