// HTTPS: certificates that are replaced without dropping connections, and clients with certificates.
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { type AddressInfo, connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { eventually, testDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { ClientCertificates } from '../../src/auth/client-certificates.ts'
import { spawnBroker } from '../support/broker.ts'
import { type Certificate, caCertificate, certificates } from '../support/certificates.ts'

const timeout = 60_000

/** A node with TLS. The files can be replaced. */
async function startTls(
  t: Test,
  files: Readonly<Record<string, string>> = {},
  settings: Readonly<Record<string, string>> = {},
) {
  const folder = t.testdir({
    'cert.pem': certificates.first.cert,
    'key.pem': certificates.first.key,
    'ca.pem': caCertificate,
    'grants.json': JSON.stringify({ 'DNS:worker.test': ['observe:*'] }),
  })
  const file = (name: string) => join(folder, name)
  const { url: databaseUrl } = await testDatabase(t, { instrumented: false })
  const child = spawnBroker({
    ROUSE_DATABASE_URL: databaseUrl,
    ROUSE_PORT: '0',
    ROUSE_GOSSIP_PORT: '0',
    ROUSE_WORKERS: '1',
    ROUSE_DRAIN_DELAY_MS: '0',
    ROUSE_TLS_CERT: file('cert.pem'),
    ROUSE_TLS_KEY: file('key.pem'),
    ...Object.fromEntries(Object.entries(files).map(([name, path]) => [name, file(path)])),
    ...settings,
  })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  t.teardown(() => {
    child.kill('SIGTERM')
    return exited
  })
  let log = ''
  child.stdout?.on('data', (chunk: Buffer) => (log += String(chunk)))
  const url = await eventually(() => /"url":"(https:[^"]+)"[^}]*node is ready/.exec(log)?.[1], {
    timeoutMs: 30_000,
  })
  const write = (name: string, text: string) => writeFileSync(file(name), text)
  return { url, child, write, logged: () => log }
}

interface Answered {
  readonly status: number | undefined
  readonly serial: string
  /** The port of the client, which shows whether a connection was used again. */
  readonly port: number | undefined
}

/** One request. Without an agent it has its own connection. */
function ask(
  url: string,
  client?: Certificate,
  agent?: Agent,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const options = { ca: caCertificate, agent: agent ?? false, headers, ...client }
    const sent = request(url, options, (response) => {
      const socket = response.socket as TLSSocket
      const serial = socket.getPeerX509Certificate()?.serialNumber ?? ''
      const answered = { status: response.statusCode, serial, port: socket.localPort }
      response.resume().on('end', () => resolve(answered))
    })
    sent.on('error', reject).end()
  })
}

test('SIGHUP replaces the certificate, keeps connections, and a broken file changes nothing', {
  timeout,
}, async (t) => {
  const { url, child, write, logged } = await startTls(t)
  t.match(url, /^https:/)
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: caCertificate })
  t.teardown(() => agent.destroy())
  const before = await ask(`${url}/stats`, undefined, agent)
  t.equal(before.status, 200)
  write('cert.pem', 'broken')
  child.kill('SIGHUP')
  await eventually(() => /could not reload the files of TLS/.test(logged()))
  t.equal((await ask(`${url}/stats`)).serial, before.serial)
  write('cert.pem', certificates.second.cert)
  write('key.pem', certificates.second.key)
  child.kill('SIGHUP')
  await eventually(async () => (await ask(`${url}/stats`)).serial !== before.serial)
  const kept = await ask(`${url}/stats`, undefined, agent)
  t.match(kept, { status: 200, port: before.port }, 'the connection that was open')
  t.notMatch(logged(), /PRIVATE KEY/)
})

test('old versions of TLS, and plain HTTP, are refused', { timeout }, async (t) => {
  const { url } = await startTls(t)
  const { port, hostname } = new URL(url)
  await t.rejects(fetch(url.replace('https:', 'http:')))
  const old = connect({
    host: hostname,
    port: Number(port),
    ca: caCertificate,
    maxVersion: 'TLSv1.1',
  })
  await t.rejects(
    new Promise((resolve, reject) => old.on('error', reject).on('secureConnect', resolve)),
  )
})

test('a connection that does not complete its handshake in time is closed', {
  timeout,
}, async (t) => {
  const { url } = await startTls(t, {}, { ROUSE_HEADERS_TIMEOUT_MS: '1000' })
  const { port, hostname } = new URL(url)
  for (const start of ['', '\x16\x03\x01']) {
    const begunMs = performance.now()
    const socket = connectPlain(Number(port), hostname, () => socket.write(start, 'latin1'))
    t.teardown(() => socket.destroy())
    await new Promise((resolve) => socket.resume().on('error', resolve).on('close', resolve))
    const passedMs = performance.now() - begunMs
    t.ok(passedMs < 20_000, `${JSON.stringify(start)}: ${Math.round(passedMs)} ms`)
  }
})

test('a client certificate has the grants of its name, and no other certificate has any', {
  timeout,
}, async (t) => {
  const { url, child, write } = await startTls(t, {
    ROUSE_TLS_CLIENT_CA: 'ca.pem',
    ROUSE_TLS_CLIENT_GRANTS: 'grants.json',
  })
  const status = async (client?: Certificate, path = '/stats') =>
    (await ask(`${url}${path}`, client)).status
  t.equal(await status(certificates.worker), 200)
  t.equal(await status(certificates.worker, '/api/v1/keys'), 403)
  t.equal(await status(certificates.guest), 401, 'no grants')
  t.equal(await status(certificates.forged), 401, 'another CA')
  t.equal(await status(), 401, 'none: a node with a client CA is not open')
  t.equal(await status(undefined, '/live'), 200)
  // Browsers show the certificate to every page that opens a WebSocket, and do not say that it is of another origin.
  const page = { origin: 'https://evil.example', upgrade: 'websocket', connection: 'Upgrade' }
  const opened = await ask(`${url}/stats`, certificates.worker, undefined, page)
  t.equal(opened.status, 403, 'a WebSocket of another page')
  write('grants.json', JSON.stringify({ 'DNS:guest.test': ['admin'] }))
  child.kill('SIGHUP')
  await eventually(async () => (await status(certificates.worker)) === 401)
  t.equal(await status(certificates.guest, '/api/v1/keys'), 200)
})

test('on a connection that stays open, a certificate ends when it expires', {
  timeout,
}, async (t) => {
  const known = new ClientCertificates()
  known.update('{"DNS:worker.test": ["observe:*"]}')
  const server = createServer({
    ...certificates.first,
    ca: caCertificate,
    requestCert: true,
    rejectUnauthorized: false,
  })
  const accepted = new Promise<TLSSocket>((resolve) => server.once('secureConnection', resolve))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1', ca: caCertificate, ...certificates.worker })
  const socket = await accepted
  t.teardown(() => {
    client.destroy()
    socket.destroy()
    server.close()
  })
  const endsAtMs = Date.parse(socket.getPeerX509Certificate()?.validTo ?? '')
  t.match(known.find(socket, endsAtMs - 1), { name: 'DNS:worker.test', endsAtMs })
  t.equal(known.find(socket, endsAtMs), undefined)
})

test('files that cannot be used are named before the database is opened', {
  timeout,
}, async (t) => {
  const folder = t.testdir({
    'cert.pem': certificates.first.cert,
    'key.pem': certificates.second.key,
    'ca.pem': caCertificate,
    'grants.json': '{"worker.test": ["observe:*"]}',
    'own-key.pem': certificates.first.key,
  })
  const file = (name: string) => join(folder, name)
  const cert = { ROUSE_TLS_CERT: file('cert.pem') }
  const pair = { ...cert, ROUSE_TLS_KEY: file('own-key.pem') }
  for (const [env, message] of [
    [cert, /ROUSE_TLS_KEY is not set/],
    [
      { ...cert, ROUSE_TLS_KEY: file('key.pem') },
      /ROUSE_TLS_CERT names a file that cannot be used/,
    ],
    [
      { ...cert, ROUSE_TLS_KEY: file('none') },
      /ROUSE_TLS_KEY names a file that cannot be read \(ENOENT/,
    ],
    [{ ...pair, ROUSE_TLS_CLIENT_CA: file('ca.pem') }, /ROUSE_TLS_CLIENT_GRANTS is not set/],
    [
      {
        ...pair,
        ROUSE_TLS_CLIENT_CA: file('ca.pem'),
        ROUSE_TLS_CLIENT_GRANTS: file('grants.json'),
      },
      /does not begin with DNS:/,
    ],
  ] as const) {
    const child = spawnBroker({ ROUSE_DATABASE_URL: 'postgres://127.0.0.1:1/x', ...env })
    let output = ''
    child.stdout?.on('data', (chunk: Buffer) => (output += String(chunk)))
    t.equal(await new Promise((resolve) => child.once('exit', resolve)), 1)
    t.match(output, message)
  }
})
