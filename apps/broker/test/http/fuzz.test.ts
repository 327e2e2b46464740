// No input to any route leads to a status of 500 or above, or ends the node.
import { request } from 'node:http'
import fc from 'fast-check'
import { test } from 'tap'
import { sharedBroker } from '../support/shared-broker.ts'

const { url, child } = await sharedBroker()
const numRuns = 150

const name = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    'q',
    'Default',
    '.',
    '..',
    '__proto__',
    'constructor',
    '\u0000',
    '\ud800',
    'x'.repeat(300),
  ),
)
const number = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom('1', '01', '-1', '1e3', ' 1', null, true),
)
const word = fc.oneof(name, number, fc.jsonValue({ maxDepth: 2 }))
const ack = fc.record(
  {
    transactionId: word,
    partitionId: word,
    leaseId: fc.oneof(word, fc.constant('A'.repeat(48)), fc.uuid()),
    receipt: fc.oneof(word, fc.constant('A'.repeat(48)), fc.uuid()),
    status: word,
    error: word,
    errorCode: word,
    delayMs: number,
  },
  { requiredKeys: [] },
)
const item = fc.record(
  {
    queue: name,
    partition: word,
    payload: fc.jsonValue(),
    transactionId: word,
    traceId: word,
    delayMs: number,
    runAt: word,
    headers: word,
  },
  { requiredKeys: [] },
)
const popFields = {
  batch: number,
  wait: fc.constant(false),
  timeout: number,
  consumerGroup: word,
  autoAck: word,
  partitions: number,
  subscriptionMode: word,
  subscriptionFrom: word,
  leaseSeconds: number,
  namespace: word,
  task: word,
}

const bodies: Record<string, fc.Arbitrary<unknown>> = {
  '/api/v1/push': fc.record({ items: fc.array(item, { maxLength: 4 }) }),
  '/api/v1/ack': ack,
  '/api/v1/ack/batch': fc.oneof(
    ack,
    fc.record({ acknowledgments: fc.array(ack, { maxLength: 4 }), consumerGroup: word }),
  ),
  '/api/v1/transaction': fc.record({
    operations: fc.array(
      fc.oneof(
        ack.map((fields) => ({ type: 'ack', ...fields })),
        fc.array(item, { maxLength: 2 }).map((items) => ({ type: 'push', items })),
        fc.jsonValue(),
      ),
      { maxLength: 3 },
    ),
    requiredLeases: fc.oneof(fc.array(fc.string()), fc.jsonValue()),
  }),
  '/api/v1/pop/queue/q': fc.record(
    { ...popFields, acks: fc.array(ack, { maxLength: 3 }) },
    { requiredKeys: [] },
  ),
  '/api/v1/pop': fc.record(popFields, { requiredKeys: [] }),
  '/api/v1/lease/x/extend': fc.record({ seconds: number }),
  '/api/v1/configure': fc.record(
    {
      queue: name,
      namespace: word,
      task: word,
      options: fc.dictionary(
        fc.oneof(
          name,
          fc.constantFrom('leaseTime', 'retryBackoffMs', 'ordering', 'ttl', 'maxSize'),
        ),
        word,
        { maxKeys: 3 },
      ),
    },
    { requiredKeys: [] },
  ),
  '/api/v1/consumer-groups/g/queues/q/seek': fc.record(
    { timestamp: word, toEnd: word },
    { requiredKeys: [] },
  ),
  '/api/v1/consumer-groups/g/subscription': fc.record(
    { queue: name, subscriptionMode: word, subscriptionFrom: word, subscriptionTimestamp: word },
    { requiredKeys: [] },
  ),
  '/api/v1/consumer-groups/g/queues/q/subscription': fc.record(
    { subscriptionMode: word, subscriptionFrom: word },
    { requiredKeys: [] },
  ),
}

for (const [path, shaped] of Object.entries(bodies)) {
  test(`POST ${path} accepts or refuses any body without a 5xx`, async (t) => {
    const body = fc.oneof(
      { weight: 4, arbitrary: shaped.map((value) => JSON.stringify(value)) },
      { weight: 1, arbitrary: fc.jsonValue().map((value) => JSON.stringify(value)) },
      { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
    )
    await fc.assert(
      fc.asyncProperty(body, async (text) => refuses5xx('POST', path, text)),
      { numRuns },
    )
    t.equal(child.exitCode, null)
  })
}

test('any query and any path is accepted or refused without a 5xx', async (t) => {
  const segment = fc.oneof(
    fc.string({ unit: 'grapheme' }).map(encodeURIComponent),
    fc.constantFrom('%', '%ff', '%2F', '%2e%2e', '%00', '%ED%A0%80', 'a'.repeat(1_000)),
  )
  const query = fc
    .dictionary(
      fc.constantFrom(...Object.keys(popFields), 'wait'),
      fc.oneof(segment, fc.nat().map(String)),
    )
    .map((fields) =>
      Object.entries({ ...fields, timeout: '1' })
        .map(([key, value]) => `${key}=${value}`)
        .join('&'),
    )
  const path = fc.oneof(
    fc.tuple(segment, query).map(([queue, text]) => `/api/v1/pop/queue/${queue}?${text}`),
    fc
      .tuple(segment, segment)
      .map(([queue, part]) => `/api/v1/pop/queue/${queue}/partition/${part}`),
    query.map((text) => `/api/v1/pop?${text}`),
    segment.map((queue) => `/api/v1/resources/queues/${queue}`),
    segment.map((lease) => `/api/v1/lease/${lease}`),
    segment.map((group) => `/api/v1/consumer-groups/${group}`),
    segment.map((any) => `/${any}`),
  )
  const method = fc.constantFrom('GET', 'DELETE', 'POST', 'PUT', 'HEAD', 'OPTIONS', 'PATCH')
  await fc.assert(
    fc.asyncProperty(method, path, async (verb, target) => refuses5xx(verb, target)),
    { numRuns: numRuns * 4 },
  )
  t.equal(child.exitCode, null)
})

/** Uses node:http, which sends paths unchanged; fetch would normalise them. */
async function refuses5xx(method: string, path: string, body?: string): Promise<void> {
  const status = await new Promise<number>((resolve, reject) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' }
    const client = request(url, { method, path, headers }, (response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode ?? 0))
    })
    client.once('error', reject)
    client.end(body)
  })
  if (status >= 500) throw new Error(`${method} ${path} ${body} answered ${status}`)
}
