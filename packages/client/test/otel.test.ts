// Spans and metrics, as the in-memory exporters of the OpenTelemetry SDK receive them.
import { context, type SpanContext, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { Discard, Rouse, type RouseOptions, traceparentOf } from '../src/index.ts'
import { otel } from '../src/otel/index.ts'
import { fromPg } from '../src/sql/index.ts'
import { testRouse } from '../src/testing/index.ts'
import { clientOf, sharedCluster, unique } from './support/cluster.ts'

const { urls, database } = await sharedCluster()
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())

interface Observed {
  readonly options: Pick<RouseOptions, 'instrument' | 'traceparent'>
  /** Spans that have ended, by their operation. */
  spans(operation: string): ReadableSpan[]
  /** The sums, or counts, of a metric, by the values of an attribute. */
  metric(name: string, attribute: string): Promise<Record<string, number>>
}

function observe(t: Test): Observed {
  const spans = new InMemorySpanExporter()
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
  const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter: metrics })
  const meters = new MeterProvider({ readers: [reader] })
  t.teardown(async () => void (await Promise.all([tracers.shutdown(), meters.shutdown()])))
  return {
    options: otel({ tracer: tracers.getTracer('test'), meter: meters.getMeter('test') }),
    spans: (operation) =>
      spans
        .getFinishedSpans()
        .filter(({ attributes }) => attributes['messaging.operation.name'] === operation),
    async metric(name, attribute) {
      await reader.forceFlush()
      const found = metrics
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap((one) => one.metrics)
        .find(({ descriptor }) => descriptor.name === name)
      const sums: Record<string, number> = {}
      for (const { attributes, value } of found?.dataPoints ?? []) {
        const label = String(attributes[attribute] ?? '')
        const count = typeof value === 'number' ? value : (value as { count: number }).count
        sums[label] = (sums[label] ?? 0) + count
      }
      return sums
    },
  }
}

test('one trace leads from the push to the handler and its ack, with links to the delivery', async (t) => {
  const observed = observe(t)
  const rouse = clientOf(t, urls, observed.options)
  const queue = rouse.queue(unique())
  const { id } = await queue.push({ to: 'ann' })
  let inside: SpanContext | undefined
  let carried: string | undefined
  const worker = queue.work(async (message) => {
    inside = trace.getSpanContext(context.active())
    carried = traceparentOf(message)
  })
  await eventually(() => observed.spans('ack').length === 1)
  await worker.stop()
  const [push, deliver, handle, ack] = ['push', 'deliver', 'handle', 'ack'].map(
    (operation) => observed.spans(operation)[0] as ReadableSpan,
  ) as [ReadableSpan, ReadableSpan, ReadableSpan, ReadableSpan]
  const { traceId, spanId } = push.spanContext()
  t.equal(carried, `00-${traceId}-${spanId}-01`, 'the message carries the push')
  t.match(push, { name: `push ${queue.name}`, kind: SpanKind.PRODUCER })
  t.match(push.attributes, {
    'messaging.system': 'rouse',
    'messaging.operation.type': 'send',
    'messaging.destination.name': queue.name,
    'messaging.message.id': id,
  })
  t.same(linkedTo(deliver), [spanId], 'the delivery links to the push')
  t.equal(deliver.parentSpanContext, undefined)
  t.equal(deliver.kind, SpanKind.CLIENT)
  t.match(handle, { kind: SpanKind.CONSUMER, parentSpanContext: { traceId, spanId } })
  t.same(linkedTo(handle), [deliver.spanContext().spanId], 'the handler links to the delivery')
  t.equal(inside?.spanId, handle.spanContext().spanId, 'the handler runs inside of its span')
  t.match(ack.parentSpanContext, { traceId, spanId: handle.spanContext().spanId })
  t.same(linkedTo(ack), [spanId])
  t.equal(observed.spans('deliver').length, 1, 'pops that find nothing have no span')
})

test('what a handler pushes belongs to its trace, also in the transaction of its ack', async (t) => {
  const observed = observe(t)
  const rouse = clientOf(t, urls, observed.options)
  const [first, second, third] = [unique(), unique(), unique()]
  rouse.queue(first).work(async (_message, work) => {
    await rouse.queue(second).push(1)
    await work.ack({ push: [{ queue: third, payload: 2 }] })
  })
  await rouse.queue(first).push(0)
  const [pushed] = await rouse.queue(second).pop({ wait: '20s' })
  const [acked] = await rouse.queue(third).pop({ wait: '20s' })
  const [handle] = observed.spans('handle') as [ReadableSpan]
  const { traceId, spanId } = handle.spanContext()
  t.match(traceparentOf(pushed as never), new RegExp(`^00-${traceId}-`))
  t.equal(traceparentOf(acked as never), `00-${traceId}-${spanId}-01`)
  const stored = await rouse.queue(third).pushIn(fromPg(database.pool), 3)
  t.match(observed.spans('push').at(-1)?.attributes, { 'messaging.message.id': stored.id })
})

test('a batch begins a trace of its own, with links to every push', async (t) => {
  const observed = observe(t)
  const rouse = testRouse(observed.options)
  await rouse.queue('q').push(1)
  await rouse.queue('q').push(2)
  await rouse.queue('q').pushMany([{ payload: 3 }, { payload: 4 }])
  const pushes = observed.spans('push').map((span) => span.spanContext().spanId)
  rouse.queue('q').workBatch({ batch: 10 }, async () => {})
  await rouse.drain()
  await rouse.close()
  const [handle] = observed.spans('handle') as [ReadableSpan]
  t.same(linkedTo(handle), pushes, 'three pushes, four messages')
  t.equal(handle.parentSpanContext, undefined)
  t.equal(handle.attributes['messaging.batch.message_count'], 4)
  const [ack] = observed.spans('ack') as [ReadableSpan]
  t.same(linkedTo(ack), [handle.spanContext().spanId])
})

test('failures have a status and a type; decisions of handlers are no failures', async (t) => {
  const observed = observe(t)
  const rouse = testRouse({ ...observed.options, logger: { error() {}, warn() {}, info() {} } })
  const queue = rouse.queue('q')
  await queue.configure({ retry: { limit: 0 } })
  for (const payload of ['good', 'bad', 'gone']) await queue.push(payload)
  await t.rejects(queue.push(1, { priority: 1, partition: 'p' }))
  queue.work({ concurrency: 1, prefetch: 0 }, async ({ data }) => {
    if (data === 'bad') throw new TypeError('typo')
    if (data === 'gone') throw new Discard('no such user')
  })
  await rouse.drain()
  await rouse.close()
  const seen = observed
    .spans('handle')
    .map(({ status, attributes, events }) => [
      status.code,
      attributes['error.type'],
      events.map(({ name }) => name),
    ])
  t.same(seen, [
    [SpanStatusCode.UNSET, undefined, []],
    [SpanStatusCode.ERROR, 'TypeError', ['exception']],
    [SpanStatusCode.UNSET, 'Discard', []],
  ])
  t.match(observed.spans('push').at(-1), {
    status: { code: SpanStatusCode.ERROR },
    attributes: { 'error.type': 'invalid_request' },
  })
  t.same(await observed.metric('messaging.client.sent.messages', 'error.type'), {
    '': 3,
    invalid_request: 1,
  })
  t.same(await observed.metric('messaging.client.consumed.messages', 'error.type'), { '': 3 })
  t.same(await observed.metric('messaging.process.duration', 'error.type'), {
    '': 1,
    TypeError: 1,
    Discard: 1,
  })
  t.same(await observed.metric('rouse.client.ended.messages', 'rouse.status'), {
    completed: 1,
    failed: 1,
    dlq: 1,
  })
  const durations = await observed.metric(
    'messaging.client.operation.duration',
    'messaging.operation.name',
  )
  t.match(durations, { push: 4 })
  t.ok((durations.ack ?? 0) >= 1 && (durations.deliver ?? 0) >= 1)
})

test('a lost lease is an error of the ack', async (t) => {
  const observed = observe(t)
  const rouse = testRouse(observed.options)
  await rouse.queue('q').push(1)
  const [message] = await rouse.queue('q').pop({ lease: '1s' })
  await rouse.advance('2s')
  await t.rejects(rouse.queue('q').ack(message as never), { code: 'lease_lost' })
  t.match(observed.spans('ack'), [
    { status: { code: SpanStatusCode.ERROR }, attributes: { 'error.type': 'lease_lost' } },
  ])
  t.same(await observed.metric('rouse.client.ended.messages', 'rouse.status'), {})
  await rouse.close()
})

test('an ack inside the transaction of a handler is no failed ack', async (t) => {
  const observed = observe(t)
  const rouse = clientOf(t, urls, observed.options)
  const queue = rouse.queue(unique())
  await queue.push(1)
  const worker = queue.work(async (_message, work) => await work.ackIn(database.pool))
  await eventually(() => observed.spans('ack').length === 1)
  await worker.stop()
  t.match(observed.spans('ack'), [{ status: { code: SpanStatusCode.UNSET } }])
})

test('a tracer that throws changes nothing', async (t) => {
  const tracer = {
    startSpan() {
      throw new Error('broken')
    },
  }
  const rouse = testRouse({ ...otel({ tracer: tracer as never }) })
  const seen: unknown[] = []
  rouse.queue('q').work(async ({ data }) => void seen.push(data))
  await rouse.queue('q').push(1)
  await rouse.drain()
  await rouse.close()
  t.same(seen, [1])
})

test('without a provider nothing is recorded, and the client works', async (t) => {
  const rouse = new Rouse({ urls, ...otel() })
  const queue = rouse.queue(unique())
  await queue.push(1)
  const [message] = await queue.pop()
  t.equal(message && traceparentOf(message), undefined)
  await rouse.close()
})

function linkedTo({ links }: ReadableSpan): string[] {
  return links.map(({ context: linked }) => linked.spanId)
}
