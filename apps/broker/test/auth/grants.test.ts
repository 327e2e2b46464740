import { seededRandom } from '@rouse/testkit'
import { test } from 'tap'
import { Grants, type Preset, parseGrant, presetGrants } from '../../src/auth/grants.ts'

const grantsOf = (...texts: string[]) => new Grants(texts.map((text) => parseGrant(text, 'grants')))

test('a grant covers the queue that it names, and a prefix covers the queues that begin with it', async (t) => {
  const grants = grantsOf('push:orders', 'push:mail-*')
  for (const queue of ['orders', 'mail-', 'mail-x', 'mail-*']) t.ok(grants.covers('push', queue))
  for (const queue of ['order', 'orders2', 'Orders', 'mail', '*', '', ' orders', 'a/orders']) {
    t.notOk(grants.covers('push', queue), queue)
  }
  t.notOk(grants.covers('pop', 'orders'), 'another verb')
  t.notOk(grants.everywhere.has('push'))
  t.ok(grants.coversAny('push'))
  t.notOk(grants.coversAny('pop'))
})

test('a star inside a name is a character like any other', async (t) => {
  const grants = grantsOf('peek:a*b')
  t.ok(grants.covers('peek', 'a*b'))
  t.notOk(grants.covers('peek', 'axb'))
  t.notOk(grants.covers('peek', 'a*bc'))
})

test('a grant of one consumer group covers only pops of that group', async (t) => {
  const grants = grantsOf('pop:orders*@billing', 'pop:mail@default', 'pop:a@b@*')
  t.ok(grants.covers('pop', 'orders-eu', 'billing'))
  t.notOk(grants.covers('pop', 'orders-eu', 'shipping'))
  t.notOk(grants.covers('pop', 'orders-eu'))
  t.ok(grants.covers('pop', 'mail', '__QUEUE_MODE__'), 'the unnamed group')
  t.ok(grants.covers('pop', 'a@b', 'any'), 'a queue with @ in its name')
  t.notOk(grants.everywhere.has('pop'))
  t.notOk(grantsOf('pop:*@billing').everywhere.has('pop'))
  t.ok(grantsOf('pop:*@*').everywhere.has('pop'))
})

test('the texts of grants are read as the same grants', async (t) => {
  const texts = ['pop:a@b@*', 'pop:a@b', 'pop:*', 'push:a@b', 'pop:x*@default', 'admin', 'peek:@*']
  const grants = grantsOf(...texts)
  const again = grantsOf(...grants.texts)
  for (const queue of ['a@b', 'a', '@b', '@', 'x1']) {
    for (const group of [undefined, 'b', '*', '__QUEUE_MODE__']) {
      for (const verb of ['pop', 'push', 'peek'] as const) {
        t.equal(again.covers(verb, queue, group), grants.covers(verb, queue, group))
      }
    }
  }
  t.equal(grantsOf(...grantsOf('pop:a@b@*').texts).covers('pop', 'a@b', 'any'), true)
  t.equal(grantsOf(...grantsOf('pop:a@b@*').texts).covers('pop', 'a', 'b'), false)
})

test('texts that are not grants are refused with the field', async (t) => {
  const texts = [
    '',
    'push',
    'push:',
    'pull:x',
    'admin:*',
    ':x',
    'PUSH:x',
    'pop:@g',
    'pop:q@',
    'push:.',
    'push:a\nb',
  ]
  for (const text of texts) {
    t.throws(() => parseGrant(text, 'grants[2]'), { errors: [{ field: 'grants[2]' }] }, text)
  }
  for (const value of [null, 1, {}, ['push:x', 'y']]) t.throws(() => parseGrant(value, 'grants'))
})

test('presets have these grants and no others', async (t) => {
  t.same(presetGrants('producer', 'a*'), ['push:a*'])
  t.same(presetGrants('worker', 'a'), ['pop:a', 'push:a'])
  t.same(presetGrants('viewer'), ['observe:*'])
  t.same(presetGrants('operator'), ['observe:*', 'peek:*', 'manage:*', 'push:*'])
  const all = ['push:*', 'pop:*', 'peek:*', 'manage:*', 'observe:*', 'admin']
  t.same(presetGrants('admin'), all)
  for (const preset of ['producer', 'worker', 'viewer', 'operator'] satisfies Preset[]) {
    t.notOk(grantsOf(...presetGrants(preset)).coversAny('admin'), preset)
  }
})

test('the matcher agrees with a plain definition for random names and patterns', async (t) => {
  const random = seededRandom(23)
  const letters = ['a', 'b', '*', '/', '@', ':', 'é', '\u{1F980}', '%2f', '.']
  const word = () =>
    Array.from({ length: 1 + random.below(4) }, () => random.pick(letters)).join('')
  for (let i = 0; i < 20_000; i += 1) {
    const [pattern, queue] = [word(), word()]
    if (pattern === '.' || pattern === '..') continue
    const expected = pattern.endsWith('*')
      ? queue.slice(0, pattern.length - 1) === pattern.slice(0, -1)
      : queue === pattern
    const found = grantsOf(`push:${pattern}`).covers('push', queue)
    if (found !== expected) t.fail(`${pattern} and ${queue}: ${found}`)
  }
})
