// Endings that are to be told to the server. They leave with the next fetch, or together in a request of their own
// as soon as the one before is answered. Where all messages of a lease are completed, the lease is told of instead.

import { RouseError } from '../rouse-error.ts'
import type { Ack, AckOutcome } from './consumer-calls.ts'
import { ackOf, type Ending, type Held, type HeldLease, rolledBack } from './held.ts'

export interface PendingAck {
  readonly held: Held
  readonly ack: Ack
  /** Undefined where nobody waits for it. */
  readonly told: ((error: RouseError | undefined) => void) | undefined
  /** Whether a refusal is what is hoped for: the message was acknowledged by ackIn. */
  readonly isCheck: boolean
  /** A try to tell it got no answer. */
  afterUnknown: boolean
}

export interface AckDeskOptions {
  readonly send: (acks: readonly Ack[]) => Promise<readonly AckOutcome[]>
  /** Completes all that a lease holds. */
  readonly sendLease: (lease: HeldLease) => Promise<AckOutcome>
  /** Whether nobody else can have ended it. */
  readonly isOurs: (held: Held) => boolean
  /** It has ended, or is out of our hands. */
  readonly onEnded: (pending: PendingAck, error: RouseError | undefined) => void
}

/** Smaller leases go in one list with others: a request costs more than a few lines of a list. */
const wholeSizeMin = 8

export class AckSender {
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
    const ack = ackOf(held, ending)
    this.#pending.push({ held, ack, told, isCheck: false, afterUnknown: false })
  }

  /** Ends a message that was acknowledged by ackIn, for the case that its transaction was rolled back. */
  check(held: Held, ending: Ending, told?: PendingAck['told']): void {
    const ack = ackOf(held, ending)
    this.#pending.push({ held, ack, told, isCheck: true, afterUnknown: false })
  }

  /** Those that a fetch may take along: not the leases that are done as a whole. */
  takeLoose(countMax: number): PendingAck[] {
    const { whole, loose } = sort(this.#pending)
    this.#pending = [...loose.slice(countMax), ...whole.flat()]
    return loose.slice(0, countMax)
  }

  /** The request they rode on failed; they go another way. */
  putBack(acks: readonly PendingAck[]): void {
    for (const ack of acks) ack.afterUnknown = true
    this.#pending = [...acks, ...this.#pending]
  }

  told(acks: readonly PendingAck[], outcomes: readonly AckOutcome[]): void {
    acks.forEach((ack, i) => this.#end(ack, this.#faultOf(ack, outcomes[i])))
  }

  /** Sends what is pending, unless some of it is under way. */
  send(countMax: number, onSent: () => void): void {
    if (this.#sending !== undefined || this.#pending.length === 0) return
    this.#sending = this.#sendNow(countMax).finally(() => {
      this.#sending = undefined
      onSent()
    })
  }

  /** Resolves when everything has been told or given up. */
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
      this.told(acks, await send())
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
    const isAccepted = outcome === 'accepted' || outcome === 'dead-lettered'
    if (pending.isCheck) return isAccepted ? faultOfCheck(pending.ack) : undefined
    if (isAccepted) return undefined
    const unknown = outcome === 'unknown' || pending.afterUnknown
    if (!unknown) return leaseLost()
    if (this.#options.isOurs(pending.held)) return undefined
    return new RouseError('outcome_unknown', 'it is unknown whether the acknowledgement counted')
  }

  #end(pending: PendingAck, error: RouseError | undefined): void {
    this.#options.onEnded(pending, error)
    pending.told?.(error)
  }
}

/** Where the handler threw, its error has been reported already. */
function faultOfCheck({ errorCode, error }: Ack): RouseError | undefined {
  return errorCode === rolledBack.errorCode
    ? new RouseError('ack_in_rolled_back', error ?? '')
    : undefined
}

/** Finds the leases of which every message is completed and nothing was said before. */
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
  const text = 'the lease is lost: the message was given to somebody else, or ended'
  return new RouseError('lease_lost', text, { status: 409, cause })
}
