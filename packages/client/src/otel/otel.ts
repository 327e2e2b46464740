// Spans and metrics of OpenTelemetry, with the names of its conventions for messaging:
//
//   push      a producer span per call; the message carries its context
//   deliver   a span per pop that found messages, linked to their pushes; pops that found none have no span
//   handle    a span per call of a handler. For one message it is a child of the push, linked to the delivery; for a
//             batch it begins a trace, linked to the pushes. Spans that the handler makes are its children
//   ack       a span per request that acknowledges: a child of the handler's span, or linked to those of several
import {
  type Attributes,
  type Context,
  context,
  type Link,
  type Meter,
  metrics,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { nowMs, wallMs } from '../clock.ts'
import type { AckOutcome } from '../consume/consumer-calls.ts'
import { isDiscard, isRetryIn } from '../consume/ending-errors.ts'
import { errorCodeOf } from '../consume/error-code.ts'
import { type Message, traceparentOf } from '../consume/message.ts'
import type { Acked, Delivered, Instrument, Operation } from '../instrument.ts'
import type { RouseOptions } from '../rouse.ts'
import { isRouseError } from '../rouse-error.ts'
import { createInstruments, type Instruments } from './instruments.ts'
import { contextOf, traceparentOfSpan } from './trace-context.ts'

/** Where spans and metrics go. */
export interface OtelOptions {
  /** Default: the tracer `@rouse/client` of the global provider. */
  readonly tracer?: Tracer | undefined
  /** Default: the meter `@rouse/client` of the global provider. */
  readonly meter?: Meter | undefined
}

const scope = '@rouse/client'

/** Options of a client: `new Rouse({ urls, ...otel() })`. */
export function otel(options: OtelOptions = {}): Pick<RouseOptions, 'instrument' | 'traceparent'> {
  const observer = new Observer(
    options.tracer ?? trace.getTracer(scope),
    createInstruments(options.meter ?? metrics.getMeter(scope)),
  )
  return {
    traceparent: () => traceparentOfSpan(trace.getSpanContext(context.active())),
    instrument: (operation, run) => observe(observer, operation, run),
  }
}

/** An operation that has begun. */
interface Observed {
  /** Where it runs; undefined: where it was called. */
  readonly context?: Context | undefined
  end(result: unknown, error?: unknown): void
}

const observe: <Result>(
  observer: Observer,
  operation: Parameters<Instrument>[0],
  run: () => Result,
) => Result = (observer, operation, run) => {
  const observed = safely(() => observer.begin(operation))
  if (observed === undefined) return run()
  const end = (result: unknown, error?: unknown): void => {
    safely(() => observed.end(result, error))
  }
  try {
    const result = observed.context === undefined ? run() : context.with(observed.context, run)
    // An object that is only like a promise may start its work each time that its `then` is called.
    const promise: unknown = isThenable(result) ? Promise.resolve(result) : undefined
    if (promise instanceof Promise) {
      promise.then(end, (error: unknown) => end(undefined, error ?? new Error('rejected')))
      return promise as typeof result
    }
    end(result)
    return result
  } catch (error) {
    end(undefined, error ?? new Error('thrown'))
    throw error
  }
}

/** A fault of an observer must not become one of the program. */
function safely<Result>(action: () => Result): Result | undefined {
  try {
    return action()
  } catch {
    return undefined
  }
}

function isThenable(value: unknown): boolean {
  return typeof (Object(value) as { then?: unknown }).then === 'function'
}

class Observer {
  readonly #tracer: Tracer
  readonly #instruments: Instruments
  /** The spans of deliveries, by message. */
  readonly #delivered = new WeakMap<Message, SpanContext>()
  /** The spans of handlers, by delivery. */
  readonly #handled = new WeakMap<Delivered, SpanContext>()

  constructor(tracer: Tracer, instruments: Instruments) {
    this.#tracer = tracer
    this.#instruments = instruments
  }

  begin(operation: Operation): Observed {
    switch (operation.kind) {
      case 'push':
        return this.#push(operation)
      case 'deliver':
        return this.#deliver(operation)
      case 'handle':
        return this.#handle(operation)
      case 'ack':
        return this.#ack(operation)
    }
  }

  #push({ queue, count }: Extract<Operation, { kind: 'push' }>): Observed {
    const attributes = { ...about('push', 'send', queue), ...batchOf(count) }
    const span = this.#tracer.startSpan(`push ${queue}`, { kind: SpanKind.PRODUCER, attributes })
    const begunMs = nowMs()
    return {
      context: trace.setSpan(context.active(), span),
      end: (result, error) => {
        const [only] = count === 1 ? ([result].flat() as ({ id?: string } | undefined)[]) : []
        if (only?.id !== undefined) span.setAttribute('messaging.message.id', only.id)
        const failed = errorType(error)
        const labels = { ...about('push', 'send', queue), ...failed }
        this.#instruments.sent.add(count, labels)
        this.#instruments.operations.record(secondsSince(begunMs), labels)
        if (error !== undefined) span.setStatus(statusOf(error)).setAttributes(failed)
        span.end()
      },
    }
  }

  /** The span is made afterwards, because most pops of an idle queue find nothing. */
  #deliver({ queue, group }: Extract<Operation, { kind: 'deliver' }>): Observed {
    const startTime = wallMs()
    const begunMs = nowMs()
    return {
      end: (result, error) => {
        const { messages = [] } = Object(result) as { messages?: readonly Message[] }
        const isFailure = isRouseError(error) && error.code !== 'closed'
        if (messages.length === 0 && !isFailure) return
        const labels = { ...about('deliver', 'receive', queue, group), ...errorType(error) }
        const span = this.#tracer.startSpan(
          `deliver ${queue}`,
          {
            kind: SpanKind.CLIENT,
            startTime,
            root: true,
            links: linksTo(messages.map(pushOf)),
            attributes: { ...labels, ...batchOf(messages.length), ...namesOf(messages) },
          },
          ROOT_CONTEXT,
        )
        for (const message of messages) this.#delivered.set(message, span.spanContext())
        if (isFailure) span.setStatus(statusOf(error))
        span.end()
        this.#instruments.operations.record(secondsSince(begunMs), labels)
        if (messages.length > 0) this.#instruments.consumed.add(messages.length, labels)
      },
    }
  }

  #handle({ queue, group, deliveries }: Extract<Operation, { kind: 'handle' }>): Observed {
    const messages = deliveries.map(({ message }) => message)
    const [push, ...others] = messages.map(pushOf)
    const isSingle = others.length === 0
    const delivered = messages.map((message) => this.#delivered.get(message))
    const labels = about('handle', 'process', queue, group)
    const span = this.#tracer.startSpan(
      `handle ${queue}`,
      {
        kind: SpanKind.CONSUMER,
        links: linksTo(isSingle ? delivered : [push, ...others]),
        attributes: { ...labels, ...batchOf(messages.length), ...namesOf(messages) },
      },
      isSingle && push !== undefined ? trace.setSpanContext(ROOT_CONTEXT, push) : ROOT_CONTEXT,
    )
    for (const delivery of deliveries) this.#handled.set(delivery, span.spanContext())
    const begunMs = nowMs()
    return {
      context: trace.setSpan(context.active(), span),
      end: (_result, error) => {
        // The handler decided to be called again later, or to give the message up.
        const isDecision = isRetryIn(error) || isDiscard(error)
        const failed = errorType(error)
        if (error !== undefined) span.setAttributes(failed)
        if (error !== undefined && !isDecision) {
          span.setStatus(statusOf(error)).recordException(error as Error)
        }
        span.end()
        this.#instruments.handled.record(secondsSince(begunMs), { ...labels, ...failed })
      },
    }
  }

  #ack({ queue, group, acks }: Extract<Operation, { kind: 'ack' }>): Observed {
    const messages = acks.map(({ held }) => held.message)
    const handled = acks.map(({ held }) => this.#handled.get(held) ?? pushOf(held.message))
    const [parent, ...others] = handled
    const isSingle = others.length === 0
    const labels = about('ack', 'settle', queue, group)
    const span = this.#tracer.startSpan(
      `ack ${queue}`,
      {
        kind: SpanKind.CLIENT,
        links: linksTo(isSingle ? messages.map(pushOf) : handled),
        attributes: { ...labels, ...batchOf(acks.length), ...namesOf(messages) },
      },
      isSingle && parent !== undefined ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT,
    )
    const begunMs = nowMs()
    return {
      end: (result, error) => {
        const outcomes = outcomesOf(result)
        const fault = error ?? faultOf(acks, outcomes)
        const failed = errorType(fault)
        if (fault !== undefined) span.setStatus(statusOf(fault)).setAttributes(failed)
        span.end()
        this.#instruments.operations.record(secondsSince(begunMs), { ...labels, ...failed })
        for (const [i, { ending }] of acks.entries()) {
          if (error !== undefined || isRefused(outcomes[i] ?? outcomes[0])) continue
          this.#instruments.ended.add(1, { ...labels, 'rouse.status': ending.status })
        }
      },
    }
  }
}

/** Attributes of spans and metrics alike: none of them names a single message. */
function about(name: string, type: string, queue: string, group?: string): Attributes {
  return {
    'messaging.system': 'rouse',
    'messaging.operation.name': name,
    'messaging.operation.type': type,
    'messaging.destination.name': queue,
    ...(group === undefined ? {} : { 'messaging.consumer.group.name': group }),
  }
}

function batchOf(count: number): Attributes {
  return count === 1 ? {} : { 'messaging.batch.message_count': count }
}

function namesOf([first, ...others]: readonly Message[]): Attributes {
  if (first === undefined || others.length > 0) return {}
  return { 'messaging.message.id': first.id, 'rouse.attempt': first.attempt }
}

function pushOf(message: Message): SpanContext | undefined {
  return contextOf(traceparentOf(message))
}

/** One link per span, although messages of one push share it. */
function linksTo(contexts: readonly (SpanContext | undefined)[]): Link[] {
  const bySpan = new Map(contexts.flatMap((one) => (one === undefined ? [] : [[one.spanId, one]])))
  return [...bySpan.values()].map((one) => ({ context: one }))
}

/** The outcomes of a request that acknowledges, in whichever form it answers. */
function outcomesOf(result: unknown): readonly AckOutcome[] {
  if (typeof result === 'string') return [result as AckOutcome]
  const { outcomes = result } = Object(result) as { outcomes?: unknown }
  return Array.isArray(outcomes) ? (outcomes as AckOutcome[]) : []
}

function faultOf(acks: readonly Acked[], outcomes: readonly AckOutcome[]): Error | undefined {
  const refused = acks.findIndex(
    ({ isCheck }, i) => isCheck !== true && isRefused(outcomes[i] ?? outcomes[0]),
  )
  if (refused < 0) return undefined
  const code = outcomes[refused] === 'unknown' ? 'outcome_unknown' : 'lease_lost'
  return Object.assign(new Error(code), { name: code })
}

function isRefused(outcome: AckOutcome | undefined): boolean {
  return outcome === 'lost' || outcome === 'unknown'
}

function errorType(error: unknown): Attributes {
  if (error === undefined) return {}
  const name = isRetryIn(error) || isDiscard(error) ? error.name : errorCodeOf(error)
  return { 'error.type': name }
}

function statusOf(error: unknown): { code: SpanStatusCode; message: string } {
  const message = error instanceof Error ? error.message : String(error)
  return { code: SpanStatusCode.ERROR, message }
}

function secondsSince(begunMs: number): number {
  return (nowMs() - begunMs) / 1_000
}
