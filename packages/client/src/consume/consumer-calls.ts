// The requests of a consumer: one queue, one consumer group, optionally one partition.
import type { Answer, Call, Caller } from '../http/caller.ts'
import type { Instrument } from '../instrument.ts'
import { jsonText } from '../push/push-item.ts'
import { RouseError } from '../rouse-error.ts'
import { errorOfAnswer } from './failure.ts'
import type { Message } from './message.ts'
import type { Session } from './session.ts'

/** How one delivery ended, with the ids that name it. */
export interface Ack {
  readonly receipt?: string | undefined
  readonly transactionId?: string | undefined
  readonly partitionId?: string | undefined
  readonly leaseId?: string | undefined
  readonly status: 'completed' | 'failed' | 'retry' | 'dlq'
  readonly error?: string | undefined
  readonly errorCode?: string | undefined
  readonly delayMs?: number | undefined
  readonly result?: unknown
}

/** `unknown`: this try was refused, but an earlier one may have succeeded. */
export type AckOutcome = 'accepted' | 'dead-lettered' | 'lost' | 'unknown'

export interface Fetch {
  readonly batch: number
  readonly partitions: number
  /** How long to wait for messages; 0: do not wait. */
  readonly waitMs: number
  /** Default: the queue's lease time. */
  readonly leaseSeconds?: number | undefined
  readonly autoAck?: boolean | undefined
  readonly leasePerMessage?: boolean | undefined
  /** The name that the consumer gives itself. */
  readonly consumer?: string | undefined
  /**
   * Acknowledged before the pop. Absent if there are none: an empty list would still add a result to the
   * response.
   */
  readonly acks?: readonly Ack[] | undefined
  /** Where a new consumer group begins. */
  readonly from?: 'all' | 'new' | Date | undefined
  readonly signal?: AbortSignal | undefined
  readonly leave?: AbortSignal | undefined
  /** No try begins later than this after the first. Default: the client's. */
  readonly retryForMs?: number | undefined
}

/** The time limits of a call. */
export type CallLimits = Pick<Call, 'timeoutMs' | 'retryForMs' | 'signal'>

export interface Fetched<Data> {
  readonly messages: readonly Message<Data>[]
  readonly outcomes: readonly AckOutcome[]
}

/** A server counts as failed if it has not answered this long after the end of the requested wait. */
const answerMsMax = 10_000

export const requestAcksMax = 1_000

export class ConsumerCalls<Data> {
  readonly queue: string
  readonly group: string | undefined
  readonly instrument: Instrument
  readonly traced: Session['traced']
  readonly #caller: Caller
  readonly #popPath: string

  constructor(
    { caller, instrument, traced }: Pick<Session, 'caller' | 'instrument' | 'traced'>,
    {
      queue,
      group,
      partition,
    }: { queue: string; group?: string | undefined; partition?: string | undefined },
  ) {
    this.queue = queue
    this.group = group
    this.instrument = instrument
    this.traced = traced
    this.#caller = caller
    const part = partition === undefined ? '' : `/partition/${encodeURIComponent(partition)}`
    this.#popPath = `/pop/queue/${encodeURIComponent(queue)}${part}`
  }

  fetch(fetch: Fetch): Promise<Fetched<Data>> {
    const { queue, group } = this
    return this.instrument({ kind: 'deliver', queue, group }, () => this.#fetch(fetch))
  }

  async #fetch(fetch: Fetch): Promise<Fetched<Data>> {
    const { waitMs, from, retryForMs, signal, leave, ...body } = fetch
    const answer = await this.#post(
      this.#popPath,
      {
        ...body,
        wait: waitMs > 0,
        timeout: waitMs,
        consumerGroup: this.group,
        subscriptionMode: typeof from === 'string' ? from : undefined,
        subscriptionFrom: from instanceof Date ? from.toISOString() : undefined,
      },
      {
        timeoutMs: waitMs + answerMsMax,
        retryForMs,
        signal,
        leave,
        // If the answer is lost, the auto-acknowledged messages are lost, too: the caller must see the error.
        atMostOnce: body.autoAck,
      },
    )
    if (answer.status === 204) return { messages: [], outcomes: [] }
    const { messages, acks = [] } = readAnswer<{ messages: Message<Data>[]; acks?: AckResult[] }>(
      answer,
    )
    return { messages, outcomes: toOutcomes(acks, answer) }
  }

  async ack(acks: readonly Ack[], limits: CallLimits = {}): Promise<readonly AckOutcome[]> {
    const body = { consumerGroup: this.group, acknowledgments: acks }
    const answer = await this.#post('/ack/batch', body, limits)
    return toOutcomes(readAnswer<AckResult[]>(answer), answer)
  }

  /** Completes all messages of the lease. */
  async ackLease(leaseId: string, limits: CallLimits = {}): Promise<AckOutcome> {
    const body = { consumerGroup: this.group, leaseId, status: 'completed' }
    return outcomeOf(await this.#post('/ack/batch', body, limits))
  }

  /** Acknowledges and pushes atomically. */
  async transact(
    acks: readonly Ack[],
    items: readonly string[],
    limits: CallLimits = {},
  ): Promise<AckOutcome> {
    const operations = acks.map((ack) =>
      JSON.stringify({ type: 'ack', consumerGroup: this.group, ...ack }),
    )
    operations.push(`{"type":"push","items":[${items.join(',')}]}`)
    const body = `{"operations":[${operations.join(',')}]}`
    return outcomeOf(await this.#post('/transaction', body, limits))
  }

  /** Reports how far the handling of a message is. */
  async progress(message: Message, progress: unknown, limits: CallLimits = {}): Promise<void> {
    const body = jsonText({ receipt: message.receipt, progress })
    readAnswer(await this.#post(`/messages/${message.id}/progress`, body, limits))
  }

  /**
   * Resolves to how long the lease lasts now, or to 0 if it is lost. While a transaction with ack_in is open, the
   * lease is not extended. A node of release 0.1.0 does not say how long it lasts.
   */
  async extend(
    leaseId: string,
    lease: { readonly seconds: number; readonly exact?: boolean | undefined },
    limits: CallLimits = {},
  ): Promise<number> {
    const answer = await this.#post(`/lease/${leaseId}/extend`, lease, limits)
    if (answer.status === 409) return 0
    return readAnswer<{ remainingMs?: number }>(answer).remainingMs ?? lease.seconds * 1_000
  }

  /** Releases the remaining messages of the lease. A lease with none left also counts as released. */
  async release(leaseId: string, limits: CallLimits = {}): Promise<void> {
    const path = `/lease/${leaseId}`
    const answer = await this.#caller.call({ method: 'DELETE', path, ...limits })
    if (answer.status !== 409) readAnswer(answer)
  }

  async options(limits: CallLimits = {}): Promise<Readonly<Record<string, unknown>>> {
    const path = `/resources/queues/${encodeURIComponent(this.queue)}`
    const answer = await this.#caller.call({ method: 'GET', path, ...limits })
    return readAnswer<{ options: Record<string, unknown> }>(answer).options
  }

  /** Whether the message is completed for its consumer group, no matter by which call. */
  async isCompleted(message: Message, limits: CallLimits = {}): Promise<boolean> {
    const path = `/messages/${message.partitionId}/${encodeURIComponent(message.transactionId)}`
    const answer = await this.#caller.call({ method: 'GET', path, ...limits })
    if (answer.status === 404) return false
    const { groups } = readAnswer<{ groups: { consumerGroup: string; status: string }[] }>(answer)
    const own = groups.find(({ consumerGroup }) => consumerGroup === message.consumerGroup)
    return own?.status === 'completed'
  }

  #post(path: string, body: unknown, limits: Partial<Call>): Promise<Answer> {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return this.#caller.call({ ...limits, method: 'POST', path, body: text })
  }
}

interface AckResult {
  readonly success: boolean
  readonly dlq?: boolean
}

/** The outcome of a request that takes effect as a whole or not at all. */
function outcomeOf(answer: Answer): AckOutcome {
  if (answer.status === 409) return answer.afterUnknown ? 'unknown' : 'lost'
  readAnswer(answer)
  return 'accepted'
}

function toOutcomes(results: readonly AckResult[], { afterUnknown }: Answer): AckOutcome[] {
  return results.map(({ success, dlq }) => {
    if (success) return dlq === true ? 'dead-lettered' : 'accepted'
    return afterUnknown ? 'unknown' : 'lost'
  })
}

/** Parses the body of an answer; throws if the answer is an error. */
export function readAnswer<Body>({ status, text }: { status: number; text: string }): Body {
  if (status >= 400) throw errorOfAnswer({ status, text })
  try {
    return JSON.parse(text) as Body
  } catch (error) {
    throw new RouseError('bad_answer', `the answer is not JSON (status ${status})`, {
      status,
      cause: error,
    })
  }
}
