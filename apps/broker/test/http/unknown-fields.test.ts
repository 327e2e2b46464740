// A misspelt field is refused with the name that was probably meant, in every body and query. What existing
// clients send is accepted.
import { endpoints, QueueOptionsSchema } from '@rouse/protocol'
import { test } from 'tap'
import { type Ackable, ackOf, apiOf, send } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const { url, database } = await sharedBroker()
const api = apiOf(url)

const item = (more: object) => ({ items: [{ queue: 'x', payload: 1, ...more }] })
const ack = { transactionId: 't', partitionId: '1', leaseId: 'l' }

test('wrong names are refused with the right suggestion', async (t) => {
  const cases: readonly [string, string, unknown, string, string | undefined][] = [
    ['POST', '/push', item({ dealyMs: 50_000 }), 'items[0].dealyMs', 'delayMs'],
    ['POST', '/push', item({ delay: '10m' }), 'items[0].delay', 'delayMs'],
    ['POST', '/push', item({ dely: '10m' }), 'items[0].dely', 'delayMs'],
    ['POST', '/push', item({ colour: 5 }), 'items[0].colour', undefined],
    ['POST', '/push', { items: [{ queue: 'x', data: 1 }] }, 'items[0].data', 'payload'],
    ['POST', '/push', { items: [], queue: 'x' }, 'queue', 'items[].queue'],
    ['POST', '/push', { messages: [] }, 'messages', 'items'],
    ['POST', '/configure', { queue: 'x', retryLimit: 5 }, 'retryLimit', 'options.retryLimit'],
    ['POST', '/configure', { name: 'x' }, 'name', 'queue'],
    ['GET', '/pop/queue/x?leaseTime=5', undefined, 'leaseTime', 'leaseSeconds'],
    ['GET', '/pop/queue/x?group=g', undefined, 'group', 'consumerGroup'],
    ['POST', '/pop/queue/x', { leaseTime: 5 }, 'leaseTime', 'leaseSeconds'],
    ['POST', '/pop/queue/x', { acks: [{ ...ack, lease: 1 }] }, 'acks[0].lease', 'leaseId'],
    ['POST', '/ack', { ...ack, state: 'failed' }, 'state', 'status'],
    ['POST', '/ack', { receipt: 'r', reason: 'x' }, 'reason', 'error'],
    ['POST', '/ack/batch', { acks: [] }, 'acks', undefined],
    [
      'POST',
      '/ack/batch',
      { acknowledgments: [{ ...ack, delay: 1 }] },
      'acknowledgments[0].delay',
      'delayMs',
    ],
    ['POST', '/lease/l/extend', { leaseSeconds: 5 }, 'leaseSeconds', 'seconds'],
    [
      'POST',
      '/transaction',
      { operations: [{ type: 'push', items: [{ queue: 'q', payload: 1, key: 1 }] }] },
      'operations[0].items[0].key',
      'partition',
    ],
    [
      'POST',
      '/transaction',
      { operations: [{ type: 'ack', ...ack, group: 'g' }] },
      'operations[0].group',
      'consumerGroup',
    ],
    [
      'POST',
      '/schedules',
      { name: 'n', queue: 'q', cron: '@daily', timezone: 'UTC' },
      'timezone',
      'timeZone',
    ],
    ['POST', '/dlq/redrive', { queue: 'q', where: { group: 'g' } }, 'where.group', 'consumerGroup'],
    ['POST', '/dlq/redrive', { queue: 'q', errorCode: 'E' }, 'errorCode', 'where.errorCode'],
    ['GET', '/messages?queue=q&search=stripe', undefined, 'search', undefined],
    ['GET', '/messages?queue=q&statuss=dead', undefined, 'statuss', 'status'],
    ['GET', '/messages?queue=q&group=g', undefined, 'group', 'consumerGroup'],
    ['DELETE', '/messages?queue=q&state=ready&dryrun=true', undefined, 'dryrun', 'dryRun'],
    ['DELETE', '/dlq?queue=q&grup=g', undefined, 'grup', undefined],
    ['POST', '/queues/q/pause', { until: 1 }, 'until', undefined],
    ['POST', '/queues/q/purge?partition=1', undefined, 'partition', undefined],
  ]
  for (const [method, path, body, field, suggestion] of cases) {
    const answer = await send(method, api.at(path), body)
    t.match(answer, { status: 400, body: { code: 'unknown_field' } }, `${method} ${path} ${field}`)
    t.equal(answer.body.errors[0].field, field)
    t.equal(answer.body.errors[0].suggestion, suggestion, field)
  }
  t.equal((await api.pop('x')).status, 204, 'nothing was stored')
})

test('the error says what is meant, and lists unknown fields before others', async (t) => {
  const { body } = await api.post('/push', {
    items: [{ queue: 'x', data: 1, dealyMs: 5, headers: 1 }],
  })
  t.match(body, {
    detail: 'items[0].data is not a known field; did you mean payload?',
    errors: [
      { field: 'items[0].data', suggestion: 'payload' },
      { field: 'items[0].dealyMs', suggestion: 'delayMs' },
      { field: 'items[0].payload', message: 'is missing' },
      { field: 'items[0].headers' },
    ],
  })
})

test('an unknown field after thousands of items is found, with its suggestion', async (t) => {
  const good = Array.from({ length: 9_999 }, () => ({ queue: 'x', payload: 1 }))
  const { status, body } = await api.push(...good, { queue: 'x', payload: 1, delay: 1 })
  t.equal(status, 400)
  t.match(body.errors, [{ field: 'items[9999].delay', suggestion: 'delayMs' }])
})

test('unknown queue options are all named, with suggestions', async (t) => {
  const queue = unique()
  const answer = await api.post('/configure', {
    queue,
    options: { retrylimit: 5, leaseTime: 10, leaseSeconds: 3, nonsense: 1 },
  })
  t.match(answer, { status: 400, body: { code: 'unknown_option' } })
  const named = answer.body.errors.map((one: { field: string; suggestion?: string }) => [
    one.field,
    one.suggestion,
  ])
  t.same(
    new Map(named),
    new Map([
      ['retrylimit', 'retryLimit'],
      ['leaseSeconds', 'leaseTime'],
      ['nonsense', undefined],
    ]),
  )
  t.equal((await api.get(`/resources/queues/${queue}`)).status, 404)
})

test('the documented options are those that the database knows', async (t) => {
  const { rows } = await database.pool.query('select name from rouse.option_rules() order by name')
  t.same(
    rows.map(({ name }: { name: string }) => name),
    Object.keys(QueueOptionsSchema.properties).sort(),
  )
})

test('every route refuses an unknown parameter and an unknown field of its body', async (t) => {
  for (const { method, path, ignoresQuery } of endpoints) {
    if (ignoresQuery === true) continue
    const at = `${url}${path.replaceAll(/:\w+/g, 'x')}`
    const inQuery = await send(method, `${at}?noSuchField=1`, method === 'GET' ? undefined : {})
    if (inQuery.body.code !== 'unknown_field') {
      // The body is checked first, and some bodies have required fields.
      t.equal(inQuery.body.code, 'invalid_request', `${method} ${path}`)
      t.not(method, 'GET')
    }
    if (method === 'GET') continue
    const inBody = await send(method, at, { noSuchField: 1 })
    t.equal(inBody.body.code, 'unknown_field', `${method} ${path}`)
    t.equal(inBody.body.errors[0].field, 'noSuchField')
  }
})

/** The fields in the sources of existing clients, by route; where in the body they are. */
const sentByClients: readonly (readonly [string, string, string, ((one: object) => object)?])[] = [
  [
    'POST',
    '/push',
    'queue partition payload transactionId traceId producerSub trace_id',
    (one) => ({ items: [one] }),
  ],
  [
    'GET',
    '/pop/queue/x',
    'batch wait timeout consumerGroup autoAck partitions namespace task subscriptionMode subscriptionFrom',
  ],
  ['GET', '/pop', 'namespace task batch wait timeout consumerGroup autoAck'],
  ['POST', '/ack', 'transactionId partitionId leaseId status error consumerGroup', (one) => one],
  [
    'POST',
    '/ack/batch',
    'acknowledgments consumerGroup',
    (one) => ({ acknowledgments: [], ...one }),
  ],
  [
    'POST',
    '/ack/batch',
    'transactionId partitionId leaseId status error',
    (one) => ({ acknowledgments: [one] }),
  ],
  ['POST', '/transaction', 'operations requiredLeases', (one) => ({ operations: [], ...one })],
  [
    'POST',
    '/transaction',
    'transactionId partitionId leaseId status error consumerGroup',
    (one) => ({ operations: [{ type: 'ack', ...one }] }),
  ],
  ['POST', '/lease/x/extend', 'seconds', (one) => one],
  ['POST', '/configure', 'queue namespace task options', (one) => one],
  ['GET', '/dlq', 'queue consumerGroup partition limit offset from to'],
  ['GET', '/messages', 'queue partition status ns namespace task from to limit offset cursor'],
  ['GET', '/resources/queues', 'limit offset search namespace task'],
  [
    'POST',
    '/traces',
    'transactionId partitionId consumerGroup traceNames eventType data',
    (one) => one,
  ],
  ['GET', '/traces/by-name/x', 'limit offset from to'],
  ['GET', '/traces/names', 'limit offset search'],
  ['GET', '/consumer-groups/lagging', 'minLagSeconds'],
  ['DELETE', '/consumer-groups/x', 'deleteMetadata'],
  ['DELETE', '/consumer-groups/x/queues/y', 'deleteMetadata'],
  ['POST', '/consumer-groups/x/queues/y/seek', 'timestamp toEnd', (one) => one],
  ['POST', '/consumer-groups/x/queues/y/partitions/z/seek', 'timestamp toEnd', (one) => one],
  ['POST', '/consumer-groups/x/subscription', 'subscriptionTimestamp', (one) => one],
]

test('each field that existing clients send is known to its route', async (t) => {
  for (const [method, path, names, inBody] of sentByClients) {
    for (const name of names.split(' ')) {
      const sent =
        inBody === undefined
          ? await send(method, api.at(`${path}?${name}=1`))
          : await send(method, api.at(path), inBody({ [name]: 1 }))
      t.not(sent.body?.code, 'unknown_field', `${name} of ${method} ${path}`)
    }
  }
  const [method, path, , inBody] = sentByClients[0] as (typeof sentByClients)[number]
  const other = await send(method, api.at(path), inBody?.({ producerName: 1 }))
  t.equal(other.body.code, 'unknown_field', 'and no other')
})

test('what existing clients send is accepted', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, namespace: 'n', task: 'k', options: { leaseTime: 60 } })
  const common = { queue, partition: 'Default', payload: 1, transactionId: 'a', traceId: 'tr' }
  const pushed = await api.push({ ...common, producerSub: 'someone', trace_id: 'x' })
  t.equal(pushed.status, 201)
  t.match((await api.pop(queue, '?autoAck=true&consumerGroup=g')).body.messages, [
    { traceId: 'tr' },
  ])
  const query =
    '?batch=10&wait=true&timeout=100&consumerGroup=h&autoAck=false&partitions=2&namespace=n&task=k' +
    '&subscriptionMode=all&subscriptionFrom=2020-01-01T00:00:00Z'
  const popped = await api.pop(queue, query)
  t.equal(popped.status, 200)
  const [message] = popped.body.messages as [Ackable]
  const full = { ...ackOf(message), status: 'retry', error: 'e' }
  t.equal((await api.post(`/lease/${message.leaseId}/extend`, { seconds: 5 })).status, 200)
  t.equal((await api.post('/ack', { ...full, consumerGroup: 'h' })).status, 200)
  const again = (await api.pop(queue, '?consumerGroup=h')).body.messages[0]
  const acknowledgments = [{ ...ackOf(again), status: 'completed', error: 'e' }]
  const listed = await api.post('/ack/batch', { acknowledgments, consumerGroup: 'h' })
  t.match(listed.body, [{ success: true }])
  t.equal((await api.post('/transaction', { operations: [], requiredLeases: [] })).status, 200)
  const span = 'from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z'
  const { partitionId, transactionId } = message
  const trace = {
    transactionId,
    partitionId,
    consumerGroup: 'h',
    traceNames: ['n'],
    eventType: 'info',
    data: 1,
  }
  t.equal((await api.post('/traces', trace)).status, 201)
  const paths = [
    `/dlq?queue=${queue}&consumerGroup=h&partition=Default&limit=1&offset=0&${span}`,
    `/messages?queue=${queue}&partition=Default&status=completed&ns=n&namespace=n&task=k&limit=1&offset=0&${span}`,
    '/resources/queues?limit=1&offset=0&search=queue&namespace=n&task=k',
    `/traces/by-name/n?limit=1&offset=0&${span}`,
    '/traces/names?limit=1&offset=0&search=n',
    `/traces/${partitionId}/${transactionId}?limit=1`,
  ]
  for (const path of paths) t.equal((await api.get(path)).status, 200, path)
  const group = `/consumer-groups/h/queues/${queue}`
  t.equal((await api.post(`${group}/seek`, { toEnd: true })).status, 200)
  t.equal((await api.post(`${group}/seek`, { timestamp: '2020-01-01T00:00:00Z' })).status, 200)
  const subscription = { subscriptionTimestamp: '2020-01-01T00:00:00Z' }
  t.equal((await api.post('/consumer-groups/h/subscription', subscription)).status, 200)
  t.equal((await api.del(`${group}?deleteMetadata=true`)).status, 200)
  t.equal((await api.del('/consumer-groups/g?deleteMetadata=false')).status, 200)
})

test('the filters of existing clients are applied', async (t) => {
  const [queue, other] = [unique('search-a'), unique('search-b')]
  for (const one of [queue, other]) await api.post('/configure', { queue: one, namespace: one })
  const queuesOf = async (query: string) => {
    const { body } = await api.get(`/resources/queues?${query}`)
    return body.queues.map((one: { queue: string }) => one.queue)
  }
  t.same(await queuesOf('search=search-'), [queue, other])
  t.same(await queuesOf('search=search-&offset=1'), [other])
  t.same(await queuesOf('search=search-&limit=1'), [queue])
  t.same(await queuesOf(`namespace=${other}&task=`), [other])
  t.same(await queuesOf('search=no-such'), [])
  await api.push(...[1, 2, 3].map((payload) => ({ queue, payload })))
  const messagesOf = async (query: string) => {
    const { body } = await api.get(`/messages?queue=${queue}&${query}`)
    return body.messages.map((one: { data: number }) => one.data)
  }
  t.same(await messagesOf('offset=1'), [2, 3])
  t.same(await messagesOf('offset=1&limit=1'), [2])
  t.same(await messagesOf('offset=3'), [])
  t.same(await messagesOf('to=2020-01-01T00:00:00Z'), [])
  t.same(await messagesOf('from=2020-01-01T00:00:00Z'), [1, 2, 3])
  t.same(await messagesOf(`ns=${queue}`), [1, 2, 3])
  t.same(await messagesOf(`namespace=${other}`), [])
  await api.pop(queue)
  t.same(await messagesOf('status=processing'), [1])
  t.match(await api.get(`/messages?queue=${queue}&offset=x`), { status: 400 })
})

test('dead letters are listed, deleted and redriven by the time of their failure', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  await api.ack((await api.pop(queue)).body.messages[0], 'dlq')
  const total = async (query: string) => (await api.get(`/dlq?queue=${queue}&${query}`)).body.total
  t.equal(await total('to=2020-01-01T00:00:00Z'), 0)
  t.equal(await total('from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z'), 1)
  t.equal((await api.del(`/dlq?queue=${queue}&to=2020-01-01T00:00:00Z`)).body.deleted, 0)
  const where = { from: '2100-01-01T00:00:00Z' }
  const plan = await api.post('/dlq/redrive', { queue, where, dryRun: true })
  t.equal(plan.body.total, 0)
  t.match(await api.get(`/dlq?queue=${queue}&from=yesterday`), {
    status: 400,
    body: { errors: [{ field: 'from' }] },
  })
})
