// Traces from a push to its ack, with a real node and a real HTTP receiver in place of the collector.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { SpanExporter } from '../../src/observe/tracing/span-exporter.ts'
import { readTraceParent, withTraceParent } from '../../src/observe/tracing/traceparent.ts'
import { readableLine } from '../../src/readable-log.ts'
import { apiOf, send } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
}

const timeout = 60_000
const received: ReceivedSpan[] = []
let status = 200
const collector = createServer((request, response) => {
  let text = ''
  request.on('data', (piece) => (text += piece))
  request.on('end', () => {
    if (status === 200 && request.url === '/v1/traces') {
      const { resourceSpans } = JSON.parse(text)
      for (const { scopeSpans } of resourceSpans) {
        for (const { spans } of scopeSpans) received.push(...spans)
      }
    }
    response.writeHead(status).end('{}')
  })
})
await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
const collectorUrl = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
const { url, log } = await sharedBroker({ env: { ROUSE_OTLP_URL: `${collectorUrl}/` } })
const api = apiOf(url)
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'

function push(queue: string, traceparent: string, headers?: object) {
  const item = { queue, payload: 1, ...(headers === undefined ? {} : { headers }) }
  const init = { headers: { 'content-type': 'application/json', traceparent } }
  return send('POST', api.at('/push'), { items: [item] }, init)
}

test('a trace goes from the push to the delivery and the ack', { timeout }, async (t) => {
  const queue = unique()
  await push(queue, `00-${traceId}-00f067aa0ba902b7-01`, { kept: 1 })
  const [message] = (await api.pop(queue)).body.messages
  t.equal(message.headers.kept, 1)
  const parent = readTraceParent(message.headers.traceparent)
  t.match(parent, { traceId, isSampled: true })
  await eventually(async () => {
    await api.ack(message)
    return received.some(({ name }) => name === `deliver ${queue}`)
  })
  const span = (name: string) => received.find((one) => one.name === `${name} ${queue}`)
  t.match(span('push'), {
    traceId,
    parentSpanId: '00f067aa0ba902b7',
    spanId: parent?.spanId,
    kind: 4,
  })
  t.match(span('deliver'), { traceId, parentSpanId: parent?.spanId, kind: 5 })
  for (const { startTimeUnixNano, endTimeUnixNano } of received) {
    t.ok(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano))
    t.ok(Math.abs(Number(BigInt(startTimeUnixNano) / 1_000_000n) - Date.now()) < timeout)
  }
  const { headers } = await fetch(`${url}/metrics`).then(async (answer) => ({
    headers: await answer.text(),
  }))
  t.match(headers, /rouse_spans_exported_total [1-9]/)
})

test('a trace that is not sampled is passed on, but not exported', { timeout }, async (t) => {
  const queue = unique()
  const traceparent = `00-${traceId}-00f067aa0ba902b8-00`
  await push(queue, traceparent)
  const own = `00-${traceId}-00f067aa0ba902b9-01`
  await push(queue, traceparent, { traceparent: own })
  await push(queue, 'nonsense')
  const { messages } = (await api.pop(queue, '?batch=3&partitions=3&autoAck=true')).body
  const sent = messages.map(({ headers }: { headers: { traceparent?: string } | null }) => {
    return headers?.traceparent ?? null
  })
  t.same(new Set(sent), new Set([traceparent, own, null]))
  t.notOk(received.some(({ name }) => name === `push ${queue}`))
})

test('what a collector refuses, and what does not fit, is dropped and counted', {
  timeout,
}, async (t) => {
  status = 503
  t.teardown(() => (status = 200))
  const failures: string[] = []
  const onFailure = (reason: string) => failures.push(reason)
  const exporter = new SpanExporter({ url: collectorUrl, node: 'a', version: '1', onFailure })
  const at = { fromMs: 1, toMs: 2, kind: 'producer', attributes: {} } as const
  for (let i = 0; i < 3_000; i += 1) {
    exporter.add({ traceId, spanId: '1', parentSpanId: '2', name: 'x', ...at })
  }
  t.equal(exporter.dropped, 3_000 - 2_048, 'the queue is bounded')
  await exporter.flush()
  t.match(
    { dropped: exporter.dropped, exported: exporter.exported },
    { dropped: 3_000, exported: 0 },
  )
  t.same(failures, ['the collector answered 503'], 'only the first failure is reported')
})

test('a dead letter is logged with the request and its principal', { timeout }, async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 'secret' })
  const [message] = (await api.pop(queue)).body.messages
  const { headers } = await api.ack(message, 'dlq', { errorCode: 'E1', error: 'secret' })
  const isLogged = () => log.find(({ event }) => event === 'dead_letter')
  await eventually(() => isLogged() !== undefined)
  t.match(isLogged(), {
    level: 'info',
    requestId: headers.get('x-request-id'),
    principal: 'anonymous',
    status: 'dlq',
    errorCode: 'E1',
    transactionId: message.transactionId,
  })
  await api.post(`/queues/${queue}/pause`)
  const audited = () => log.find(({ audit }) => (audit as { target?: string })?.target === queue)
  await eventually(() => audited() !== undefined)
  t.match(audited(), { level: 'info', audit: { principal: 'anonymous', requestId: /./ } })
  t.notOk(JSON.stringify(log).includes('secret'))
})

test('a new consumer group and the dead letters of expired leases are logged, a limited number', {
  timeout,
}, async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { retryLimit: 0, leaseTime: 1 } })
  const items = Array.from({ length: 60 }, (_, i) => ({
    queue,
    payload: 'secret',
    partition: `${i}`,
  }))
  await api.push(...items)
  const popped = await api.pop(
    queue,
    '?consumerGroup=billing&consumer=worker-7&batch=60&partitions=60',
  )
  t.equal(popped.body.messages.length, 60)
  const of = (event: string) => log.filter((one) => one.event === event && one.queue === queue)
  await eventually(() => of('group_created').length > 0)
  t.match(of('group_created'), [{ level: 'info', consumerGroup: 'billing', node: /./ }])
  t.equal(of('group_created').length, 1)
  await eventually(() => of('dead_letter').length > 0, { timeoutMs: 20_000 })
  const [first] = of('dead_letter')
  t.match(first, {
    level: 'info',
    process: 'primary',
    consumerGroup: 'billing',
    consumer: 'worker-7',
  })
  t.match(first, { messages: 1, attempt: 1, partition: /^\d+$/, seq: 1 })
  const isAll = async () =>
    (await api.get(`/dlq?queue=${queue}&limit=100`)).body.messages.length === 60
  await eventually(isAll, { timeoutMs: 20_000 })
  t.ok(of('dead_letter').length <= 40, 'at most 20 a second')
  t.notOk(JSON.stringify(log).includes('secret'))
})

test('on a terminal an entry is one readable line without control characters', async (t) => {
  const entry = {
    level: 'warn',
    time: '2026-11-18T06:56:43.123Z',
    node: 'n',
    process: 'worker 1',
    pid: 1,
  }
  const line = readableLine(
    JSON.stringify({ ...entry, msg: 'a\u0007b', queue: 'q\u001b]0;x', n: 2 }),
  )
  t.equal(line, '\u001b[33m06:56:43.123 WARN  n worker 1:\u001b[0m ab queue=q]0;x n=2\n')
  const forged = {
    ...entry,
    msg: 'a',
    requestId: 'x\u009b31m\u0085\u202ey',
    reason: 'b\n06:56 INFO',
  }
  t.equal(
    readableLine(JSON.stringify(forged)),
    '\u001b[33m06:56:43.123 WARN  n worker 1:\u001b[0m a requestId=x31my reason=b\n  06:56 INFO\n',
  )
  t.equal(readableLine('not json\n'), 'not json\n')
})

test('a traceparent is added to headers only once, and only if it is valid', async (t) => {
  t.equal(withTraceParent(undefined, 'x'), '{"traceparent":"x"}')
  t.equal(withTraceParent('{}', 'x'), '{"traceparent":"x"}')
  t.equal(
    withTraceParent('{"a":12345678901234567890}', 'x'),
    '{"a":12345678901234567890,"traceparent":"x"}',
  )
  t.equal(withTraceParent('{"traceparent":"y"}', 'x'), '{"traceparent":"y"}')
  t.equal(readTraceParent(`00-${'0'.repeat(32)}-00f067aa0ba902b7-01`), undefined)
  t.equal(readTraceParent('00-x-y-01'), undefined)
})

test('the collector stops', async () => {
  collector.closeAllConnections()
  collector.close()
})
