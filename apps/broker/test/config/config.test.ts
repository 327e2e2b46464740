import { test } from 'tap'
import {
  type Config,
  type ConfigSources,
  describeConfig,
  loadConfig,
} from '../../src/config/config.ts'
import { nodeConnections } from '../../src/config/connections.ts'

const databaseUrl = 'postgres://rouse:hush@db.example/rouse'
const files: Record<string, string> = {
  'rouse.json': '{"port": 5000, "workers": 3, "defaultLeaseTime": 20, "gossipPeers": ["a:1"]}',
  'bad.json': '{"prot": 5000}',
  'url.secret': `${databaseUrl}\n`,
  'short.secret': 'hushed\n',
}

function load(
  env: Record<string, string> = {},
  args: readonly string[] = [],
  sources: Partial<ConfigSources> = {},
): Config {
  const readFile = (path: string): string => {
    const text = files[path]
    if (text === undefined) throw new Error(`no ${path}`)
    return text
  }
  const given = { ROUSE_DATABASE_URL: databaseUrl, ...env }
  return loadConfig({ env: given, args, readFile, ...sources }).config
}

test('with only a database set, the documented defaults apply', async (t) => {
  t.match(load(), {
    host: '127.0.0.1',
    port: 4600,
    popWaitBaseIntervalMs: 100,
    popWaitMaxIntervalMs: 1_000,
    popWaitBackoffThreshold: 3,
    popWaitBackoffMultiplier: 2,
    popWaitIdleIntervalMs: 5_000,
    popWaitLocalFirstMs: 10,
    waitersMax: 15_000,
    leaseDurability: 'normal',
    migrate: 'auto',
    queueDefaults: {},
  })
  t.ok(load().workers >= 2)
  t.match(load().nodeId, /-4600$/)
})

test('a file overrides defaults, the environment overrides the file, a flag overrides all', async (t) => {
  const env = { ROUSE_CONFIG: 'rouse.json' }
  t.equal(load(env).port, 5000)
  t.equal(load(env).workers, 3)
  t.same(load(env).gossipPeers, ['a:1'])
  t.equal(load({ ...env, ROUSE_PORT: '6000' }).port, 6000)
  t.equal(load({ ...env, ROUSE_PORT: '6000' }, ['--port', '7000']).port, 7000)
  t.equal(load({}, ['--config=rouse.json', '--port=7001']).port, 7001)
})

test('an unknown key is rejected with a suggestion', async (t) => {
  t.throws(() => load({ ROUSE_PROT: '1' }), { message: /ROUSE_PROT .*did you mean ROUSE_PORT\?/ })
  t.throws(() => load({ ROUSE_DEFAULT_LEASETIME: '1' }), { message: /ROUSE_DEFAULT_LEASE_TIME/ })
  t.throws(() => load({}, ['--wrokers=2']), { message: /did you mean --workers\?/ })
  t.throws(() => load({ ROUSE_CONFIG: 'bad.json' }), { message: /"prot".*did you mean port\?/ })
  t.throws(() => load({ ROUSE_PORT_FILE: 'url.secret' }), { message: /ROUSE_PORT_FILE/ })
})

test('variables of other programs are ignored', async (t) => {
  const links = {
    ROUSE_URL: 'http://127.0.0.1:4600',
    ROUSE_TEST_DATABASE_URL: 'postgres://x',
    ROUSE_SERVICE_HOST: '10.0.0.1',
    ROUSE_SERVICE_PORT: '4600',
    ROUSE_SERVICE_PORT_HTTP: '4600',
    ROUSE_PORT: 'tcp://10.0.0.1:4600',
    ROUSE_PORT_4600_TCP: 'tcp://10.0.0.1:4600',
    ROUSE_PORT_4600_TCP_PROTO: 'tcp',
    ROUSE_GOSSIP_PORT: 'udp://10.0.0.1:4601',
    ROUSE_NODE_2_SERVICE_HOST: '10.0.0.2',
    ROUSE_NODE_2_PORT: 'tcp://10.0.0.2:4600',
    ROUSE_NODE_2_PORT_4600_TCP_ADDR: '10.0.0.2',
  }
  t.match(load(links), { port: 4600, gossipPort: 4601 })
})

test('a mistyped port setting is not taken for a service link', async (t) => {
  for (const name of ['ROUSE_GOSIP_PORT', 'ROUSE_HTTP_PORT', 'ROUSE_NODE_2_PORT', 'ROUSE_PRT']) {
    for (const value of ['4700', '', 'tcp:4700']) {
      t.throws(() => load({ [name]: value }), {
        message: new RegExp(`^${name} is an unknown setting`),
      })
    }
  }
  t.throws(() => load({ ROUSE_GOSIP_PORT: '4700' }), { message: /did you mean ROUSE_GOSSIP_PORT/ })
})

test('only a port setting can be a service link', async (t) => {
  const link = 'tcp://10.0.0.1:5432'
  t.throws(() => load({ ROUSE_DATABASE_URL: link }), { message: /must be a postgres:\/\/ URL/ })
  t.throws(() => load({ ROUSE_HOST: link }), { message: /^ROUSE_HOST is not an address/ })
})

test('an invalid address is rejected', async (t) => {
  for (const [name, value, problem] of [
    ['ROUSE_HOST', 'nope..', /not an address or host name/],
    ['ROUSE_HOST', 'http://one', /not an address or host name/],
    ['ROUSE_GOSSIP_HOST', '[::1]', /not an address or host name.*without brackets/],
    ['ROUSE_GOSSIP_HOST', '999.1.1.1', /not an address or host name/],
    ['ROUSE_GOSSIP_ADVERTISE', '0.0.0.0', /can be bound but not advertised/],
    ['ROUSE_GOSSIP_ADVERTISE', '0.0.0.0:4601', /can be bound but not advertised/],
    ['ROUSE_GOSSIP_ADVERTISE', '::', /can be bound but not advertised/],
    ['ROUSE_GOSSIP_ADVERTISE', '[::]:4601', /can be bound but not advertised/],
    ['ROUSE_ADVERTISE_URL', 'foo', /http:\/\/ or https:\/\//],
    ['ROUSE_ADVERTISE_URL', 'foo:4600', /http:\/\/ or https:\/\//],
  ] as const) {
    const refusal = { name: 'ConfigError', setting: name, message: problem }
    t.throws(() => load({ [name]: value }), refusal, `${name}=${value}`)
  }
  const names = [
    '0.0.0.0',
    '::',
    'fe80::1%eth0',
    'localhost',
    'node-1',
    'node_1.internal.',
    '10.eu',
  ]
  for (const host of names) t.equal(load({ ROUSE_HOST: host }).host, host)
  t.equal(load({ ROUSE_GOSSIP_ADVERTISE: '10.0.0.0' }).gossipAdvertise, '10.0.0.0')
  for (const url of ['http://one:4600', 'https://rouse.example/behind']) {
    t.equal(load({ ROUSE_ADVERTISE_URL: url }).advertiseUrl, url)
  }
})

test('the error for a value that is out of bounds or of the wrong type names the setting', async (t) => {
  for (const [name, value] of [
    ['ROUSE_PORT', '65536'],
    ['ROUSE_PORT', '4600.5'],
    ['ROUSE_PORT', '0x10'],
    ['ROUSE_WORKERS', '0'],
    ['POP_WAIT_BASE_INTERVAL_MS', '-1'],
    ['POP_WAIT_BACKOFF_MULTIPLIER', '0.5'],
    ['ROUSE_NOTIFY', 'maybe'],
    ['ROUSE_LOG_LEVEL', 'loud'],
    ['ROUSE_DEFAULT_RETRY_BACKOFF_MS', '1,x'],
    ['ROUSE_DEFAULT_DEAD_LETTER_QUEUE', '1'],
    ['ROUSE_DATABASE_URL', 'mysql://x'],
    ['ROUSE_DATABASE_URL', 'postgres://one,two/db?target_session_attrs=standby'],
    ['ROUSE_LISTEN_URL', 'postgres://one,,two/db'],
  ] as const) {
    t.throws(() => load({ [name]: value }), { message: new RegExp(name) }, `${name}=${value}`)
  }
  t.throws(() => load({ POP_WAIT_BASE_INTERVAL_MS: '2000' }), {
    message: /POP_WAIT_MAX_INTERVAL_MS/,
  })
  t.throws(() => loadConfig({ env: {}, args: [] }), { message: /ROUSE_DATABASE_URL is not set/ })
})

test('a secret may come from a file, but not from two places', async (t) => {
  const env = { ROUSE_DATABASE_URL_FILE: 'url.secret' }
  t.equal(load({ ...env, ROUSE_DATABASE_URL: '' }).databaseUrl, databaseUrl)
  t.throws(() => load(env), { message: /both set/ })
  t.throws(() => load({ ROUSE_GOSSIP_SECRET_FILE: 'nowhere' }), {
    message: /ROUSE_GOSSIP_SECRET_FILE names an unreadable file/,
  })
})

test('defaults of queue options are read as numbers, booleans and lists', async (t) => {
  const { queueDefaults } = load({
    ROUSE_DEFAULT_LEASE_TIME: '10',
    ROUSE_DEFAULT_RETRY_BACKOFF_MS: '0, 1000',
    ROUSE_DEFAULT_DEAD_LETTER_QUEUE: 'false',
    ROUSE_DEFAULT_ORDERING: 'none',
    ROUSE_DEFAULT_COMPLETED_RETENTION_SECONDS: '-1',
  })
  t.same(queueDefaults, {
    leaseTime: 10,
    retryBackoffMs: [0, 1_000],
    deadLetterQueue: false,
    ordering: 'none',
    completedRetentionSeconds: -1,
  })
})

test('the description names every setting and hides the secrets', async (t) => {
  const text = describeConfig(
    load({ ROUSE_GOSSIP_SECRET: 'quiet and rather long', ROUSE_DEFAULT_TTL: '5' }),
  )
  t.match(JSON.parse(text), {
    ROUSE_DATABASE_URL: 'postgres://rouse:***@db.example/rouse',
    ROUSE_GOSSIP_SECRET: '***',
    ROUSE_PORT: 4600,
    ROUSE_DEFAULT_TTL: 5,
  })
  t.notMatch(text, /hush|quiet/)
})

test('gossip beyond this machine requires a secret, and the error says so', async (t) => {
  t.throws(() => load({ ROUSE_GOSSIP_HOST: '0.0.0.0' }), {
    message: /ROUSE_GOSSIP_SECRET is not set.*openssl rand -base64 32/,
  })
  t.equal(load({ ROUSE_GOSSIP_HOST: '::1' }).gossipSecret, undefined)
  const secret = { ROUSE_GOSSIP_HOST: '0.0.0.0', ROUSE_GOSSIP_SECRET: 'sixteen or more letters' }
  t.match(load(secret), { gossipHost: '0.0.0.0' })
  t.notMatch(describeConfig(load(secret)), /letters/)
  t.equal(load({}, ['--gossip-secret-file=url.secret']).gossipSecret, databaseUrl)
  t.throws(() => load({}, ['--gossip-secret-file=nowhere']), { message: /unreadable file/ })
})

test('an error about gossip settings names the setting and a fix, and contains no secret', async (t) => {
  const [one, two, three, four] = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(20))
  for (const [name, value, wayOut, more] of [
    ['ROUSE_GOSSIP_SECRET', 'hushed', /at least 16 characters.*openssl rand/],
    ['ROUSE_GOSSIP_SECRET', `${one},hushed`, /at least 16 characters/],
    ['ROUSE_GOSSIP_SECRET', `${one},${two},${three},${four}`, /Remove the oldest/],
    ['ROUSE_GOSSIP_SECRET', `${one},${one}`, /Generate another one/],
    ['ROUSE_GOSSIP_SECRET', ',', /openssl rand/, { ROUSE_GOSSIP_HOST: '0.0.0.0' }],
    ['ROUSE_GOSSIP_SECRET_FILE', 'short.secret', /^ROUSE_GOSSIP_SECRET .*16 characters/],
    ['ROUSE_GOSSIP_PEERS', 'one:4601,10.0.0.5', /"10\.0\.0\.5" .*write host:port/],
    ['ROUSE_GOSSIP_ADVERTISE', 'one:two:4601', /"one:two:4601" .*write host/],
    ['ROUSE_GOSSIP_ADVERTISE', 'x'.repeat(254), /at most 253 bytes/],
    ['ROUSE_NODE_ID', 'x'.repeat(65), /1 to 64 bytes/],
  ] as const) {
    const make = () => load({ [name]: value, ...more })
    t.throws(make, { name: 'ConfigError', setting: name.replace('_FILE', '') }, `${name}=${value}`)
    t.throws(make, { message: wayOut })
    t.throws(make, { message: /^(?!.*(hushed|aaaa))[^\n]*$/ }, 'one line without the secret')
  }
})

test('settings that gossip accepts are accepted', async (t) => {
  const secrets = ['a', 'b', 'c'].map((letter) => letter.repeat(16)).join(' , ')
  const peers = 'one:4601,10.0.0.5:1,[fd00::5]:4601,srv:_gossip._udp.rouse'
  t.equal(load({ ROUSE_GOSSIP_SECRET: secrets }).gossipSecret, secrets)
  t.equal(load({ ROUSE_GOSSIP_PEERS: peers }).gossipPeers.length, 4)
  const long = 'rouse-broker-0.rouse-broker-headless.production-eu.svc.cluster.local:4601'
  for (const advertise of ['node-1.internal', 'node-1:4700', 'fd00::5', '[fd00::5]:4700', long]) {
    t.equal(load({ ROUSE_GOSSIP_ADVERTISE: advertise }).gossipAdvertise, advertise)
  }
  // Two secrets may have the same key id in one cluster and not in another, so only a node that knows its
  // cluster can reject them.
  for (let i = 0; i < 500; i += 1) {
    load({ ROUSE_GOSSIP_SECRET: `the first of two secrets,the second of two ${i}` })
  }
})

test('a worker starts even if the file of the gossip secret is bad or missing', async (t) => {
  for (const file of ['short.secret', 'nowhere']) {
    const env = { ROUSE_GOSSIP_SECRET_FILE: file, ROUSE_GOSSIP_HOST: '0.0.0.0' }
    t.throws(() => load(env), { message: /^ROUSE_GOSSIP_SECRET/ })
    t.equal(load(env, [], { isWorker: true }).gossipSecret, undefined)
  }
})

test('nodes that bind any free port have different ids, and a worker has the id of its primary', async (t) => {
  const env = { ROUSE_PORT: '0' }
  t.match(load(env).nodeId, new RegExp(`-${process.pid}$`))
  t.match(load(env, [], { isWorker: true }).nodeId, new RegExp(`-${process.ppid}$`))
})

test('connections are configured per node and divided among its processes', async (t) => {
  const of = (env: Record<string, string>, serverMax?: number) =>
    nodeConnections(load({ ROUSE_WORKERS: '4', ...env }), serverMax)
  t.same(of({}), { node: 68, worker: 15 }, 'fifteen per worker plus eight')
  t.same(of({}, 400), { node: 68, worker: 15 })
  t.same(of({}, 200), { node: 50, worker: 10 }, 'a quarter of the connections of the server')
  t.same(of({}, 40), { node: 28, worker: 5 }, 'at least five per worker plus eight')
  t.same(of({ ROUSE_CONNECTIONS_MAX: '40' }, 100), { node: 40, worker: 8 })
  t.same(of({ ROUSE_POOL_MAX: '3' }, 100), { node: 20, worker: 3 }, 'the older setting')
})

test('the error for impossible connection settings names the setting and a fix', async (t) => {
  const both = { ROUSE_CONNECTIONS_MAX: '40', ROUSE_POOL_MAX: '10', ROUSE_WORKERS: '2' }
  t.throws(() => load(both), { message: /^ROUSE_CONNECTIONS_MAX and ROUSE_POOL_MAX are both set/ })
  t.throws(() => load({ ROUSE_CONNECTIONS_MAX: '17', ROUSE_WORKERS: '2' }), {
    message:
      /^ROUSE_CONNECTIONS_MAX is 17, but 2 workers need at least 18: raise it, or lower ROUSE_WORKERS$/,
  })
  t.equal(load({ ROUSE_CONNECTIONS_MAX: '18', ROUSE_WORKERS: '2' }).connectionsMax, 18)
})

test('a flag with a secret is noticed, so that it can be hidden', async (t) => {
  const env = { ROUSE_DATABASE_URL: 'postgres://localhost/x', ROUSE_GOSSIP_SECRET: 'x'.repeat(32) }
  t.equal(loadConfig({ env, args: ['--port=1'] }).hasSecretFlag, false)
  t.equal(loadConfig({ env, args: ['--gossip-secret', 'y'.repeat(32)] }).hasSecretFlag, true)
})

test('an issuer needs an audience, and a URL that no one can listen to on the way', async (t) => {
  const audience = { ROUSE_OIDC_AUDIENCE: 'rouse' }
  t.equal(load({ ROUSE_OIDC_ISSUER: 'https://id.example/a', ...audience }).oidcAudience, 'rouse')
  t.throws(() => load(audience), { message: /^ROUSE_OIDC_ISSUER is not set/ })
  t.throws(() => load({ ROUSE_OIDC_ISSUER: 'https://id.example' }), {
    message: /^ROUSE_OIDC_AUDIENCE is not set/,
  })
  t.throws(() => load({ ROUSE_OIDC_ISSUER: 'http://id.example', ...audience }), {
    message: /^ROUSE_OIDC_ISSUER must be a URL that begins with https/,
  })
  t.throws(() => load({ ROUSE_OIDC_CLIENT_ID: 'dashboard' }), {
    message: /^ROUSE_OIDC_CLIENT_ID needs ROUSE_OIDC_ISSUER/,
  })
})
