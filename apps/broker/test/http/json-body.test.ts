// Numbers that JavaScript cannot represent keep all their digits in payload, headers and data. In other
// fields they are parsed as usual.
import fc from 'fast-check'
import { test } from 'tap'
import { apiOf, send } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const bytesMax = 40_000_000
const { url, database } = await sharedBroker({
  env: {
    ROUSE_BODY_MAX_BYTES: String(bytesMax),
    ROUSE_PAYLOAD_MAX_BYTES: String(bytesMax),
    ROUSE_WORKERS: '1',
  },
})
const api = apiOf(url)

const snowflake = '1849302847102938475'

function post(path: string, body: string) {
  const headers = { 'content-type': 'application/json' }
  return send('POST', api.at(path), undefined, { body, headers })
}

async function textOf(path: string): Promise<string> {
  return (await fetch(api.at(path))).text()
}

const digits = (minLength: number, maxLength: number) =>
  fc
    .array(fc.integer({ min: 0, max: 9 }), { minLength, maxLength })
    .map((list) => list.join(''))
    .filter((text) => !text.startsWith('0'))

const longNumber = fc.oneof(
  digits(16, 40),
  digits(16, 40).map((text) => `-${text}`),
  fc.tuple(digits(1, 15), digits(15, 30)).map(([whole, part]) => `${whole}.${part}`),
  fc.tuple(digits(1, 5), fc.integer({ min: 309, max: 99_999 })).map(([n, e]) => `${n}e${e}`),
  fc.tuple(digits(1, 5), fc.integer({ min: 330, max: 9_999 })).map(([n, e]) => `0.${n}E-${e}`),
)
const trickyText = fc.constantFrom(
  '"',
  '\\',
  '\\"',
  `","payload":${snowflake}`,
  `{"data":${snowflake}}`,
  'rouse-number-',
  'enc1:00000000:AAAA',
)
const stringText = fc
  .oneof(fc.string({ unit: 'grapheme' }), trickyText)
  .map((text) => JSON.stringify(text))
const { value: jsonText } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    longNumber,
    stringText,
    fc.constantFrom('null', 'true', 'false', '0', '-1.5'),
    fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
    objectText(tie('value')),
  ),
}))

function objectText(value: fc.Arbitrary<string>) {
  const key = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    trickyText,
    fc.constantFrom('payload', 'headers', 'data', 'items', '__proto__'),
  )
  // No integer keys: JavaScript puts them first in objects that are parsed.
  const keys = fc.uniqueArray(
    key.filter((text) => !/^\d+$/.test(text)),
    { maxLength: 4 },
  )
  return fc
    .tuple(keys, fc.array(value, { minLength: 4, maxLength: 4 }))
    .map(([names, values]) => names.map((name, i) => `${JSON.stringify(name)}:${values[i]}`))
    .map((members) => `{${members.join(',')}}`)
}

test('payload and headers with long numbers are delivered with their exact text', async () => {
  const message = fc.record({ payload: jsonText, headers: objectText(jsonText) })
  const batch = fc.array(message, { minLength: 1, maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(batch, fc.boolean(), async (messages, inTransaction) => {
      const queue = unique()
      const items = messages.map(
        ({ payload, headers }) =>
          ` { "headers" : ${headers} , "queue":"${queue}",\n"payload" :${payload} }`,
      )
      const answer = inTransaction
        ? await post('/transaction', `{"operations":[{"type":"push","items":[${items.join()}]}]}`)
        : await post('/push', `{"items":[${items.join()}]}`)
      if (answer.status >= 300) throw new Error(`answered ${answer.status}`)
      const popped = await textOf(`/pop/queue/${queue}?batch=20&autoAck=true`)
      const listed = await textOf(`/messages?queue=${queue}&limit=20`)
      for (const { payload, headers } of messages) {
        if (!popped.includes(`"data":${payload},"createdAt"`)) throw new Error(popped)
        if (!popped.includes(`"headers":${headers}}`)) throw new Error(popped)
        if (!listed.includes(`"data":${payload},"headers":${headers}}`)) throw new Error(listed)
      }
    }),
    { numRuns: 60 },
  )
})

test('a number in place of a string is refused, however long it is', async (t) => {
  await fc.assert(
    fc.asyncProperty(longNumber, async (number) => {
      for (const [path, body] of [
        ['/push', `{"items":[{"queue":${number},"payload":1}]}`],
        ['/push', `{"items":[{"queue":"q","payload":1,"partition":${number}}]}`],
        ['/push', `{"items":[{"queue":"q","payload":1,"transactionId":${number}}]}`],
        ['/push', `{"items":[{"queue":"q","payload":1,"traceId":${number}}]}`],
        ['/push', `{"items":[{"queue":"q","payload":1,"runAt":${number}}]}`],
        ['/push', `{"items":[{"queue":"q","payload":${number},"headers":${number}}]}`],
        ['/push', `{"items":[{"queue":"q","payload":${number},"transactionId":${number}}]}`],
        [
          '/transaction',
          `{"operations":[{"type":"push","items":[{"queue":${number},"payload":1}]}]}`,
        ],
        ['/transaction', `{"operations":[],"requiredLeases":[${number}]}`],
        ['/ack', `{"transactionId":${number},"partitionId":"1","leaseId":"x"}`],
        ['/pop/queue/q', `{"consumerGroup":${number}}`],
        ['/configure', `{"queue":${number}}`],
        ['/configure', `{"queue":"q","namespace":${number}}`],
        ['/configure', `{"queue":"q","options":{"ordering":${number}}}`],
        ['/schedules', `{"name":${number},"queue":"q","cron":"@daily"}`],
        ['/traces', `{"partitionId":"1","transactionId":${number},"data":1}`],
      ] as const) {
        const { status } = await post(path, body)
        if (status !== 400) throw new Error(`${path} ${body} answered ${status}`)
      }
    }),
    { numRuns: 20 },
  )
  const { rows } = await database.pool.query(
    `select name from rouse.queues where name ~ 'rouse-number' or name ~ '^[0-9]+$'
     union all select name from rouse.partitions where name ~ 'rouse-number'`,
  )
  t.same(rows, [])
})

test('a safe integer is accepted as an option, and a larger number is refused', async (t) => {
  const queue = unique()
  const largest = await post(
    '/configure',
    `{"queue":"${queue}","options":{"maxSize":9007199254740991}}`,
  )
  t.match(largest, { status: 200, body: { options: { maxSize: Number.MAX_SAFE_INTEGER } } })
  for (const value of ['9007199254740993', '1e999', '[1e999]', '123456789012345678901234567890']) {
    for (const name of ['maxSize', 'leaseTime', 'retryBackoffMs']) {
      const body = `{"queue":"${queue}","options":{"${name}":${value}}}`
      t.match(await post('/configure', body), { status: 400 }, body)
    }
  }
  t.match((await api.get(`/resources/queues/${queue}`)).body, {
    options: { maxSize: Number.MAX_SAFE_INTEGER, leaseTime: 300 },
  })
  const delayed = await post(
    '/push',
    `{"items":[{"queue":"${queue}","payload":1,"delayMs":12345678901234567890}]}`,
  )
  t.equal(delayed.status, 400)
})

test('schedules and traces keep every digit, also in responses', async (t) => {
  const queue = unique()
  const payload = `{"id":${snowflake}}`
  const headers = `{"from":[${snowflake}1]}`
  const schedule = `{"name":"s","queue":"${queue}","cron":"* * * * * *","payload":${payload},"headers":${headers}}`
  const written = await fetch(api.at('/schedules'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: schedule,
  })
  for (const text of [await written.text(), await textOf('/schedules')]) {
    t.match(text, `"payload":${payload}`)
    t.match(text, `"headers":${headers}`)
  }
  const popped = await textOf(`/pop/queue/${queue}?wait=true&timeout=20000`)
  t.match(popped, `"data":${payload}`)
  t.match(popped, `"from":[${snowflake}1]`)
  await api.del('/schedules/s')
  const { partitionId } = JSON.parse(popped)
  const trace = `{"partitionId":"${partitionId}","transactionId":"t","data":[${snowflake}]}`
  t.equal((await post('/traces', trace)).status, 201)
  t.match(await textOf(`/traces/${partitionId}/t`), `"data":[${snowflake}]`)
})

test('of duplicate keys the last one counts, with or without long numbers', async (t) => {
  const queue = unique()
  const item = (payload: string) => `{"queue":"${queue}","payload":${payload}}`
  const twice = `{"items":[${item(snowflake)},${item(snowflake)}],"items":[${item('1')}]}`
  t.equal((await post('/push', twice)).status, 201)
  const inItem = `{"queue":"${queue}","payload":${snowflake},"p\\u0061yload":${snowflake}7}`
  t.equal((await post('/push', `{"items":[${inItem}]}`)).status, 201)
  const ignored = `"producerSub":{"__proto__":{"payload":${snowflake}}},"producerSub":{}`
  const poison = `{${ignored},"queue":"${queue}","payload":{"x":2}}`
  t.equal((await post('/push', `{"items":[${poison}]}`)).status, 201)
  t.equal((await api.push({ queue, payload: 3 })).status, 201)
  const popped = await textOf(`/pop/queue/${queue}?batch=10`)
  t.same(
    [...popped.matchAll(/"data":(.*?),"createdAt"/g)].map(([, data]) => data),
    ['1', `${snowflake}7`, '{"x":2}', '3'],
  )
})

test('a payload that looks encrypted is delivered unchanged by a queue that is not encrypted', async (t) => {
  const queue = unique()
  const looks = ['enc1:00000000:AAAA', 'enc1:', 'enc1:00000000:AAAA 1849302847102938475']
  for (const payload of looks) await api.push({ queue, payload })
  const { body } = await api.pop(queue, '?batch=10')
  t.same(
    body.messages.map(({ data }: { data: unknown }) => data),
    looks,
  )
})

test('a body of 20 MB with a long string and a long number is stored unchanged', async (t) => {
  const queue = unique()
  const payload = `{"text":"${'x\\n'.repeat(100)}${'y'.repeat(20_000_000)}","n":${snowflake}}`
  t.equal(
    (await post('/push', `{"items":[{"queue":"${queue}","payload":${payload}}]}`)).status,
    201,
  )
  const popped = await textOf(`/pop/queue/${queue}`)
  t.ok(popped.includes(`"data":${payload},`))
})
