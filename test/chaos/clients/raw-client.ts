// A client that uses the plain HTTP API: one request per call, no retries, no exceptions.
import type { Message, Transport } from '@rouse/client'
import type { AckedItem, Outcome } from '../history/records.ts'
import { errorResult, responseResult } from './outcomes.ts'
import type { Payload } from './wire-call.ts'

export interface RawItem {
  readonly queue: string
  readonly partition?: string | undefined
  readonly payload: Payload
  readonly transactionId?: string
  readonly delayMs?: number
  readonly unique?: { readonly key: string }
  readonly priority?: number
}

export type RawMessage = Message<Payload> & {
  readonly leaseId: string
  readonly receipt: string
}

/** A dead letter in the list. */
export interface RawLetter {
  readonly id: string
}

export interface RawPop {
  /** Exactly one of these three is set. */
  readonly queue?: string
  readonly namespace?: string
  readonly task?: string
  readonly group?: string | undefined
  readonly batch: number
  readonly partitions: number
  readonly waitMs: number
  readonly acks?: readonly object[] | undefined
  /** Where the group starts, if this pop creates it. */
  readonly subscription?: Readonly<Record<string, string>> | undefined
}

export interface Answered<Body> {
  readonly outcome: Outcome
  /** The body of an ok response, if it has one. */
  readonly body: Body | undefined
}

const answerMsMax = 10_000

export class RawClient {
  readonly #url: string
  readonly #transport: Transport
  readonly #signal: AbortSignal

  /** `signal` ends long polls early. */
  constructor(url: string, transport: Transport, signal: AbortSignal) {
    this.#url = url
    this.#transport = transport
    this.#signal = signal
  }

  push(items: readonly RawItem[]): Promise<Answered<unknown>> {
    return this.#ask('POST', '/push', { items })
  }

  async pop(pop: RawPop): Promise<Answered<readonly RawMessage[]>> {
    const path = pop.queue === undefined ? '/pop' : `/pop/queue/${encodeURIComponent(pop.queue)}`
    const wait = { wait: pop.waitMs > 0, timeout: pop.waitMs }
    const source = {
      ...(pop.namespace === undefined ? {} : { namespace: pop.namespace }),
      ...(pop.task === undefined ? {} : { task: pop.task }),
    }
    const options = {
      batch: pop.batch,
      partitions: pop.partitions,
      ...wait,
      ...source,
      ...pop.subscription,
    }
    const group = pop.group === undefined ? {} : { consumerGroup: pop.group }
    const limits = { msMax: pop.waitMs + answerMsMax, signal: this.#signal }
    const query = Object.entries({ ...options, ...group }).map(
      ([key, value]) => `${key}=${encodeURIComponent(value)}`,
    )
    const asked =
      pop.acks === undefined
        ? this.#ask('GET', `${path}?${query.join('&')}`, undefined, limits)
        : this.#ask('POST', path, { ...options, ...group, acks: pop.acks }, limits)
    const { outcome, body } = await asked
    return { outcome, body: (body as { messages: RawMessage[] } | undefined)?.messages ?? [] }
  }

  /** `resultOf`: what the ack of a completed message returns. */
  ack(
    messages: readonly RawMessage[],
    status: AckedItem['status'] = 'completed',
    resultOf: (message: RawMessage) => unknown = () => undefined,
  ): Promise<Answered<unknown>> {
    const acknowledgments = messages.map((message) => ({
      ...ackOf(message, status),
      result: resultOf(message),
    }))
    const consumerGroup = messages[0]?.consumerGroup
    return this.#ask('POST', '/ack/batch', { consumerGroup, acknowledgments })
  }

  transact(message: RawMessage, items: readonly RawItem[]): Promise<Answered<unknown>> {
    const { consumerGroup } = message
    const ack = { type: 'ack', consumerGroup, ...ackOf(message, 'completed') }
    return this.#ask('POST', '/transaction', { operations: [ack, { type: 'push', items }] })
  }

  reportProgress({ id, receipt }: RawMessage, progress: unknown): Promise<Answered<unknown>> {
    return this.#ask('POST', `/messages/${id}/progress`, { receipt, progress })
  }

  /** Waits until the message has ended. */
  awaitEnd(id: string, waitMs: number): Promise<Answered<unknown>> {
    const limits = { msMax: waitMs + answerMsMax, signal: this.#signal }
    return this.#ask('GET', `/messages/${id}?wait=true&timeout=${waitMs}`, undefined, limits)
  }

  extend({ leaseId }: RawMessage, seconds: number): Promise<Answered<unknown>> {
    return this.#ask('POST', `/lease/${leaseId}/extend`, { seconds })
  }

  release({ leaseId }: RawMessage): Promise<Answered<unknown>> {
    return this.#ask('DELETE', `/lease/${leaseId}`, undefined)
  }

  configure(queue: string, configuration: object): Promise<Answered<unknown>> {
    return this.#ask('POST', '/configure', { queue, ...configuration })
  }

  cancel(id: string): Promise<Answered<unknown>> {
    return this.#ask('DELETE', `/messages/${id}`, undefined)
  }

  purge(queue: string): Promise<Answered<unknown>> {
    return this.#ask('POST', `/queues/${queue}/purge`, {})
  }

  /** Moves the group to that time, or to the end of the queue if `to` is undefined. */
  seek(queue: string, group: string, to: Date | undefined): Promise<Answered<unknown>> {
    const body = to === undefined ? { toEnd: true } : { timestamp: to.toISOString() }
    return this.#ask('POST', `/consumer-groups/${group}/queues/${queue}/seek`, body)
  }

  subscribe(
    queue: string,
    group: string,
    subscription: Readonly<Record<string, string>>,
  ): Promise<Answered<unknown>> {
    const path = `/consumer-groups/${encodeURIComponent(group)}/queues/${queue}/subscription`
    return this.#ask('POST', path, subscription)
  }

  async letters(queue: string, limit: number): Promise<readonly RawLetter[]> {
    const { body } = await this.#ask('GET', `/dlq?queue=${queue}&limit=${limit}`, undefined)
    return (body as { messages: RawLetter[] } | undefined)?.messages ?? []
  }

  /** Starts a redrive; `redriveState` reports when it is done. */
  redrive(queue: string, where: object): Promise<Answered<unknown>> {
    return this.#ask('POST', '/dlq/redrive', { queue, where })
  }

  async redriveState(id: string): Promise<string | undefined> {
    const { body } = await this.#ask('GET', `/dlq/redrive/${id}`, undefined)
    return (body as { state: string } | undefined)?.state
  }

  async #ask(
    method: string,
    path: string,
    body: object | undefined,
    limits: { readonly msMax: number; readonly signal?: AbortSignal } = { msMax: answerMsMax },
  ): Promise<Answered<unknown>> {
    const timeout = AbortSignal.timeout(limits.msMax)
    try {
      const { status, text } = await this.#transport.send({
        method,
        url: new URL(`/api/v1${path}`, this.#url),
        headers: body === undefined ? {} : { 'content-type': 'application/json' },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: limits.signal === undefined ? timeout : AbortSignal.any([timeout, limits.signal]),
      })
      const { outcome } = responseResult(status, text, path.startsWith('/pop'))
      const hasBody = outcome === 'ok' && text !== ''
      return { outcome, body: hasBody ? JSON.parse(text) : undefined }
    } catch (error) {
      return { outcome: errorResult(error).outcome, body: undefined }
    }
  }
}

/** Every second message is named by its receipt, the others in the way of existing clients. */
export function ackOf(message: RawMessage, status: AckedItem['status']): object {
  const { transactionId, partitionId, leaseId, receipt, seq } = message
  return seq % 2 === 0 ? { receipt, status } : { transactionId, partitionId, leaseId, status }
}
