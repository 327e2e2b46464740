// A transport that records every request about messages: the request, its time, and its result for the
// client.
import type { Transport, TransportAnswer, TransportRequest } from '@rouse/client'
import { HeldMessages } from './held-messages.ts'
import { type CallResult, errorResult, responseResult } from './outcomes.ts'
import type { Recorder } from './recorder.ts'
import { readCall, type WireCall, withAnswer } from './wire-call.ts'

export interface RecordingOptions {
  readonly base: Transport
  readonly recorder: Recorder
  /** The lease time of the queues, for pops that do not set one. */
  readonly leaseMs: number
}

export class RecordingTransport implements Transport {
  readonly #options: RecordingOptions
  readonly #held = new HeldMessages()

  constructor(options: RecordingOptions) {
    this.#options = options
  }

  async send(request: TransportRequest): Promise<TransportAnswer> {
    const { base, recorder, leaseMs } = this.#options
    const call = readCall(request, this.#held, leaseMs)
    if (call === undefined) return await base.send(request)
    const end = recorder.begin(call)
    let answer: TransportAnswer
    try {
      answer = await base.send(request)
    } catch (error) {
      end(call, errorResult(error))
      throw error
    }
    const result = responseResult(answer.status, answer.text, call.kind === 'pop')
    const finished = withAnswer(call, bodyOf(answer, result), answer.status === 409)
    end(finished, result)
    this.#remember(finished)
    return answer
  }

  close(): void {
    this.#options.base.close()
  }

  #remember(call: WireCall): void {
    if (call.kind === 'pop') this.#held.popped(call.group, call.messages)
    if (call.kind !== 'pop' && call.kind !== 'ack') return
    for (const { receipt, success } of call.acks) if (success === true) this.#held.ended(receipt)
  }
}

function bodyOf({ status, text }: TransportAnswer, { outcome }: CallResult): unknown {
  return outcome === 'ok' && status !== 204 ? JSON.parse(text) : undefined
}
