import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { formatAddress, parseAddress } from '../../src/index.ts'
import { Discovery } from '../../src/membership/discovery.ts'
import type { NameService } from '../../src/membership/name-lookup.ts'
import { advertisedAddress } from '../../src/options.ts'
import { normalAddress } from '../../src/transport/address.ts'
import { startNameServer, type Zone } from '../support/name-server.ts'
import { alive, startNode } from '../support/transport-suite.ts'

async function discover(t: Test, zone: Zone) {
  return discoverWith(t, await startNameServer(t, zone))
}

/** Starts discovery, and records the addresses from each source and how often they were reported. */
function discoverWith(t: Test, names: NameService) {
  const found = new Map<string, readonly string[]>()
  const told = { count: 0 }
  const discovery = new Discovery({
    names,
    random: () => 0,
    isAlone: () => true,
    onAddresses: (source, addresses) => {
      found.set(source, addresses)
      told.count += 1
    },
  })
  t.teardown(() => discovery.stop())
  discovery.start()
  return { discovery, found, told }
}

test('every address of a name is tried', async (t) => {
  const { discovery, found } = await discover(t, {
    a: { 'rouse.test': ['10.0.0.1', '10.0.0.2', '10.0.0.3'] },
    aaaa: { 'rouse.test': ['::5'] },
  })
  discovery.set('static', ['rouse.test:4601', '10.0.0.9:1', '[fd00::1]:2'])
  t.same(found.get('static'), ['10.0.0.9:1', '[fd00::1]:2'], 'numeric addresses need no lookup')
  await eventually(() => found.get('static')?.length === 6)
  t.same(
    new Set(found.get('static')),
    new Set([
      '10.0.0.1:4601',
      '10.0.0.2:4601',
      '10.0.0.3:4601',
      '[::5]:4601',
      '10.0.0.9:1',
      '[fd00::1]:2',
    ]),
  )
})

test('an SRV record yields hosts and ports', async (t) => {
  const { discovery, found } = await discover(t, {
    srv: {
      '_gossip._udp.rouse.test': [
        { name: 'one.rouse.test', port: 1 },
        { name: 'two.rouse.test', port: 2 },
      ],
    },
    a: { 'one.rouse.test': ['10.0.0.1'], 'two.rouse.test': ['10.0.0.2'] },
  })
  discovery.set('static', ['srv:_gossip._udp.rouse.test'])
  await eventually(() => found.get('static')?.length === 2)
  t.same(found.get('static'), ['10.0.0.1:1', '10.0.0.2:2'])
})

test('names are resolved again; a failed lookup keeps the last answer, a definite "not found" removes it', async (t) => {
  const zone: Zone = { a: { 'rouse.test': ['10.0.0.1'] } }
  const { discovery, found, told } = await discover(t, zone)
  discovery.set('database', ['rouse.test:1'])
  await eventually(() => found.get('database')?.length === 1)
  zone.a = { 'rouse.test': ['10.0.0.2', '10.0.0.3'] }
  await eventually(() => found.get('database')?.join() === '10.0.0.2:1,10.0.0.3:1')
  zone.isBroken = true
  discovery.set('database', ['rouse.test:1', 'unknown.invalid:1'])
  const before = told.count
  // Wait for two rounds: the first may have started before the change.
  await eventually(() => told.count >= before + 2)
  t.same(found.get('database'), ['10.0.0.2:1', '10.0.0.3:1'])
  zone.isBroken = false
  zone.a = {}
  await eventually(() => found.get('database')?.length === 0)
})

/** A name service that answers from tables. A lookup of any other name fails. */
function tables(a: Record<string, string[]>, aaaa: Record<string, string[]>): NameService {
  const answer = async (table: Record<string, string[]>, name: string) => {
    const found = table[name]
    if (found === undefined) throw Object.assign(new Error('no answer'), { code: 'ETIMEOUT' })
    return found
  }
  return {
    resolve4: (name) => answer(a, name),
    resolve6: (name) => answer(aaaa, name),
    resolveSrv: async () => [
      { name: 'one.test', port: 1 },
      { name: 'two.test', port: 2 },
    ],
  }
}

test('a lookup that fails for one address family removes no address', async (t) => {
  const a: Record<string, string[]> = { 'rouse.test': ['10.0.0.1'] }
  const { discovery, found, told } = discoverWith(t, tables(a, { 'rouse.test': ['fd00::5'] }))
  discovery.set('static', ['rouse.test:1'])
  await eventually(() => found.get('static')?.join() === '10.0.0.1:1,[fd00::5]:1')
  delete a['rouse.test']
  const before = told.count
  await eventually(() => told.count >= before + 2)
  t.same(found.get('static'), ['10.0.0.1:1', '[fd00::5]:1'])
})

test('a lookup that fails for one SRV host removes no address', async (t) => {
  const a: Record<string, string[]> = { 'one.test': ['10.0.0.1'], 'two.test': ['10.0.0.2'] }
  const { discovery, found, told } = discoverWith(t, tables(a, {}))
  discovery.set('static', ['srv:_gossip._udp.test'])
  await eventually(() => found.get('static')?.join() === '10.0.0.1:1,10.0.0.2:2')
  delete a['one.test']
  a['two.test'] = ['10.0.0.3']
  const before = told.count
  await eventually(() => told.count >= before + 2)
  t.same(found.get('static'), ['10.0.0.1:1', '10.0.0.3:2'])
})

test('every name is resolved, however many there are', async (t) => {
  const hosts = Array.from({ length: 150 }, (_, index) => `node-${index}.rouse.test`)
  const a = Object.fromEntries(hosts.map((host, index) => [host, [`10.0.0.${index + 1}`]]))
  const { discovery, found } = await discover(t, { a })
  discovery.set(
    'database',
    hosts.map((host) => `${host}:1`),
  )
  await eventually(() => found.get('database')?.length === hosts.length)
})

test('a name that is added during a round is resolved next', async (t) => {
  const asked: string[] = []
  let answerFirst: ((addresses: string[]) => void) | undefined
  const names: NameService = {
    resolve4: (name) => {
      asked.push(name)
      if (name !== 'slow.test') return Promise.resolve(['10.0.0.2'])
      return new Promise((resolve) => {
        answerFirst = resolve
      })
    },
    resolve6: async () => [],
    resolveSrv: async () => [],
  }
  const found = new Map<string, readonly string[]>()
  const discovery = new Discovery({
    names,
    random: () => 0,
    isAlone: () => false,
    onAddresses: (source, addresses) => found.set(source, addresses),
  })
  t.teardown(() => discovery.stop())
  discovery.start()
  discovery.set('static', ['slow.test:1'])
  await eventually(() => answerFirst !== undefined)
  discovery.set('database', ['late.test:1'])
  answerFirst?.(['10.0.0.1'])
  await eventually(() => asked.includes('late.test') && asked.length > 2)
  answerFirst?.(['10.0.0.1'])
  await eventually(() => found.get('database')?.join() === '10.0.0.2:1')
  t.same(found.get('static'), ['10.0.0.1:1'])
})

test('a name that is removed and added again during its lookup is resolved again', async (t) => {
  const questions: ((addresses: string[]) => void)[] = []
  const names: NameService = {
    resolve4: () => new Promise((resolve) => questions.push(resolve)),
    resolve6: async () => [],
    resolveSrv: async () => [],
  }
  const { discovery, found, told } = discoverWith(t, names)
  discovery.set('database', ['rouse.test:1'])
  await eventually(() => questions.length === 1)
  questions[0]?.(['10.0.0.1'])
  await eventually(() => found.get('database')?.join() === '10.0.0.1:1')
  await eventually(() => questions.length === 2)
  discovery.set('database', [])
  const before = told.count
  questions[1]?.(['10.0.0.1'])
  await eventually(() => told.count > before)
  discovery.set('database', ['rouse.test:1'])
  await eventually(() => questions.length === 3)
})

test('the answer for a name that no source lists is forgotten', async (t) => {
  const zone: Zone = { a: { 'one.test': ['10.0.0.1'], 'two.test': ['10.0.0.2'] } }
  const { discovery, found } = await discover(t, zone)
  discovery.set('database', ['one.test:1'])
  await eventually(() => found.get('database')?.length === 1)
  discovery.set('database', ['two.test:1'])
  await eventually(() => found.get('database')?.join() === '10.0.0.2:1')
  zone.a = {}
  discovery.set('database', ['one.test:1'])
  t.same(found.get('database'), [])
})

test('one name can stand for all nodes, including the node that resolves it', async (t) => {
  const names = await startNameServer(t, {
    a: { 'all.rouse.test': ['127.0.0.1', '127.0.0.2', '127.0.0.3'] },
  })
  const first = await startNode(t, 1, undefined)
  const port = Number(first.address.split(':')[1])
  const peers = [`all.rouse.test:${port}`]
  const start = (index: number) =>
    startNode(t, index, undefined, { names, peers, bind: { host: `127.0.0.${index}`, port } })
  const others = await Promise.all([start(2), start(3)])
  const nodes = [first, ...others]
  await eventually(() => nodes.every(({ gossip }) => alive(gossip).length === 2))
})

test('every spelling of an address has one canonical form', async (t) => {
  const { discovery, found } = await discover(t, {})
  discovery.set('static', [
    '[::FFFF:10.0.0.5]:4601',
    '[FD00:0::5]:1',
    '10.0.0.6:0001',
    'not an address',
  ])
  t.same(found.get('static'), ['10.0.0.5:4601', '[fd00::5]:1', '10.0.0.6:1'])
  t.equal(normalAddress('[::ffff:a00:5]:1'), '10.0.0.5:1')
  t.equal(normalAddress('[FE80::0:1%eth0]:1'), '[fe80::1%eth0]:1')
  t.equal(normalAddress('Rouse.internal:1'), 'Rouse.internal:1')
  t.equal(advertisedAddress('FD00:0::5', '[::]:7'), '[fd00::5]:7')
})

test('two nodes meet when one is listed by an address of the other family', async (t) => {
  const first = await startNode(t, 1, undefined)
  const port = first.address.split(':')[1]
  await startNode(t, 2, undefined, { peers: [`[::ffff:127.0.0.1]:${port}`] })
  await eventually(() => alive(first.gossip).length === 1)
})

test('IPv4 and IPv6 addresses are parsed and formatted', async (t) => {
  t.same(parseAddress('10.0.0.1:4601'), { host: '10.0.0.1', port: 4601 })
  t.same(parseAddress('[fd00::1]:4601'), { host: 'fd00::1', port: 4601 })
  t.same(parseAddress('a.b-c:1'), { host: 'a.b-c', port: 1 })
  for (const wrong of ['', 'a', 'a:', ':1', 'fd00::1:4601', 'a:0', 'a:65536', 'a b:1', '[::1]']) {
    t.equal(parseAddress(wrong), undefined)
  }
  t.equal(formatAddress({ host: 'fd00::1', port: 1 }), '[fd00::1]:1')
  t.equal(formatAddress({ host: '::ffff:10.0.0.1', port: 1 }), '10.0.0.1:1')
})
