import { test } from 'tap'
import { type Endpoint, editDistance, endpoints, suggest } from '../src/index.ts'

/** The names at the first level of the body or query of an endpoint. */
function namesOf(method: string, path: string, part: 'body' | 'query'): string[] {
  const endpoint = endpoints.find((one) => one.method === method && one.path === path) as Endpoint
  const { properties } = endpoint[part] as { properties: object }
  return Object.keys(properties)
}

test('synonyms of other APIs are recognised, where the place knows the field', async (t) => {
  const item = ['queue', 'partition', 'payload', 'transactionId', 'delayMs', 'runAt', 'headers']
  const pop = namesOf('GET', '/api/v1/pop', 'query')
  const schedule = namesOf('POST', '/api/v1/schedules', 'body')
  const cases: readonly [string, readonly string[], string | undefined][] = [
    ['delay', item, 'delayMs'],
    ['data', item, 'payload'],
    ['body', item, 'payload'],
    ['idempotencyKey', item, 'transactionId'],
    ['leaseTime', pop, 'leaseSeconds'],
    ['visibility_timeout', pop, 'leaseSeconds'],
    ['group', pop, 'consumerGroup'],
    ['count', pop, 'batch'],
    ['tz', schedule, 'timeZone'],
    ['timezone', schedule, 'timeZone'],
    ['data', schedule, 'payload'],
    ['group', ['queue'], undefined],
  ]
  for (const [name, known, meant] of cases) t.equal(suggest(name, known), meant, name)
})

test('a misspelt name is recognised, with and without its unit', async (t) => {
  const known = ['queue', 'payload', 'delayMs', 'leaseSeconds', 'consumerGroup']
  const cases: readonly [string, string | undefined][] = [
    ['dealyMs', 'delayMs'],
    ['dely', 'delayMs'],
    ['payloda', 'payload'],
    ['consumer_group', 'consumerGroup'],
    ['Queue', 'queue'],
    ['consumergruop', 'consumerGroup'],
    ['colour', undefined],
    ['', undefined],
    ['x'.repeat(1_000_000), undefined],
    ['constructor', undefined],
    ['__proto__', undefined],
  ]
  for (const [name, meant] of cases) t.equal(suggest(name, known), meant, name.slice(0, 20))
})

test('a name of a deeper level is suggested with its path', async (t) => {
  const nested = ['options.retryLimit', 'options.leaseTime', 'items[].payload']
  t.equal(suggest('retryLimit', ['queue', 'options'], nested), 'options.retryLimit')
  t.equal(suggest('retry_limit', ['queue', 'options'], nested), 'options.retryLimit')
  t.equal(suggest('payload', ['items'], nested), 'items[].payload')
  t.equal(suggest('retryLimits', ['queue', 'options'], nested), undefined, 'only the very name')
})

test('the edit distance counts an exchange of neighbours as one', async (t) => {
  t.equal(editDistance('dealy', 'delay'), 1)
  t.equal(editDistance('', 'abc'), 3)
  t.equal(editDistance('abc', 'abc'), 0)
  t.equal(editDistance('kitten', 'sitting'), 3)
})
