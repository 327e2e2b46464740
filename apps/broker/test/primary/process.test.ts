import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { spawnBroker, startBroker } from '../support/broker.ts'
import { apiOf, send } from '../support/http.ts'

const databaseUrl = 'postgres://u:hush@127.0.0.1:1/none'

test('SIGTERM answers waiting pops, drains the node, and ends it with code 0', async (t) => {
  const { url, stop } = await startBroker(t)
  const api = apiOf(url)
  await api.push({ queue: 'leased', payload: 1 })
  const waiting = Array.from({ length: 10 }, () => api.pop('empty', '?wait=true&timeout=60000'))
  await eventually(async () => (await send('GET', `${url}/stats`)).body.waiting.total >= 10, {
    intervalMs: 200,
  })
  const began = performance.now()
  const exit = stop()
  for (const answer of await Promise.all(waiting)) {
    t.equal(answer.status, 204)
    t.equal(answer.headers.get('connection'), 'close')
  }
  t.match(await exit, { code: 0, signal: null })
  t.ok(performance.now() - began < 10_000)
})

test('a draining node is not ready and finishes its requests', async (t) => {
  const { url, database, stop, exited } = await startBroker(t, { instrumented: true })
  const api = apiOf(url)
  await api.push({ queue: 'q', payload: 0 })
  const barrier = await database.armBarrier('pop-begun')
  const popping = api.pop('q')
  await eventually(async () => {
    const { rows } = await database.pool.query(
      `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
    )
    return rows.length === 1
  })
  void stop()
  const notReady = await eventually(async () => {
    const answer = await send('GET', `${url}/ready`)
    return answer.status === 503 && answer
  })
  t.match(notReady.body, { code: 'draining', retryable: true })
  t.equal(notReady.headers.get('connection'), 'close')
  await barrier.release()
  t.match(await popping, { status: 200, body: { messages: [{ data: 0 }] } })
  t.match(await exited, { code: 0 })
})

test('a request that is never completed delays a drain, which then ends with code 0', async (t) => {
  const { url, stop } = await startBroker(t)
  const { hostname, port } = new URL(url)
  const client = connect(Number(port), hostname)
  client.on('error', () => {})
  t.teardown(() => client.destroy())
  client.write('POST /api/v1/push HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{')
  await eventually(async () => (await send('GET', `${url}/stats`)).body.requests >= 2)
  const began = performance.now()
  t.match(await stop(), { code: 0, signal: null })
  t.comment(`ended after ${Math.round(performance.now() - began)} ms`)
})

test('a worker that dies is replaced', async (t) => {
  const { url, log, child } = await startBroker(t)
  const api = apiOf(url)
  const pids = () =>
    log.filter((entry) => entry.msg === 'worker is ready').map((entry) => entry.workerPid as number)
  const doomed = pids()[0] as number
  process.kill(doomed, 'SIGKILL')
  await eventually(() => pids().length === 3, { timeoutMs: 30_000 })
  await eventually(async () => (await send('GET', `${url}/stats`)).body.local_sidecars === 2)
  const waiting = api.pop('q', '?wait=true&timeout=10000')
  await api.push({ queue: 'q', payload: 1 })
  t.equal((await waiting).status, 200)
  t.equal(child.exitCode, null)
})

test('connections that a killed worker had not accepted yet are closed', async (t) => {
  const { url, log } = await startBroker(t)
  const port = Number(new URL(url).port)
  const doomed = log.find((entry) => entry.msg === 'worker is ready')?.workerPid as number
  process.kill(doomed, 'SIGSTOP')
  t.teardown(() => isRunning(doomed) && process.kill(doomed, 'SIGKILL'))
  await eventually(() => stateOf(doomed) === 'T')
  const clients = Array.from({ length: 6 }, () => askOnce(t, port))
  await eventually(() => clients.filter(({ answered }) => answered).length === 5)
  const untaken = clients.find(({ answered }) => !answered)
  t.equal(untaken?.readyState, 'open', 'it waits for the stopped worker')
  process.kill(doomed, 'SIGKILL')
  await eventually(() => clients.every(({ readyState }) => readyState === 'closed'), {
    timeoutMs: 2_000,
  })
  t.same(connectionsLeftBy(port), [])
})

test('workers do not outlive their primary', async (t) => {
  const { log, child, exited } = await startBroker(t)
  const pids = log.filter((entry) => entry.workerPid).map((entry) => entry.workerPid as number)
  t.equal(pids.length, 2)
  child.kill('SIGKILL')
  await exited
  await eventually(() => pids.every((pid) => !isRunning(pid)))
})

test('--check-config prints the configuration with masked secrets and exits', async (t) => {
  const good = spawnBroker({ ROUSE_DATABASE_URL: databaseUrl }, ['--check-config', '--port=5'])
  const [printed, [code]] = await Promise.all([text(good.stdout), once(good, 'exit')])
  t.equal(code, 0)
  t.match(JSON.parse(printed), { ROUSE_PORT: 5, ROUSE_DATABASE_URL: /^postgres:\/\/u:\*\*\*@/ })
})

test('an invalid setting is named on stderr and ends the program with code 1', async (t) => {
  const bad = spawnBroker({ ROUSE_DATABASE_URL: databaseUrl, ROUSE_PRT: '1' }, ['--check-config'])
  const [complaint, [code]] = await Promise.all([text(bad.stderr), once(bad, 'exit')])
  t.equal(code, 1)
  t.match(complaint, /ROUSE_PRT .*did you mean ROUSE_PORT\?/)
})

test('a port in use ends the program with code 1', async (t) => {
  const { url, database } = await startBroker(t)
  const { port } = new URL(url)
  const second = spawnBroker({ ROUSE_DATABASE_URL: database.url, ROUSE_PORT: port })
  const [log, [code]] = await Promise.all([text(second.stdout), once(second, 'exit')])
  t.equal(code, 1)
  t.match(log, /EADDRINUSE/)
})

/** Sends one request on its own connection, and closes the connection after the response. */
function askOnce(t: Test, port: number): Socket & { answered?: boolean } {
  const client: Socket & { answered?: boolean } = connect(port, '127.0.0.1')
  t.teardown(() => client.destroy())
  client.on('error', () => {})
  client.once('data', () => {
    client.answered = true
    client.end()
  })
  client.write('GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n')
  return client
}

/** Returns the state of a process from /proc: `T` means stopped. */
function stateOf(pid: number): string | undefined {
  return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
}

/** Returns the sockets in CLOSE_WAIT: the client has closed its side, and the node has not. */
function connectionsLeftBy(port: number): string[] {
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n')
  return lines.filter((line) => {
    const [, local, , state] = line.trim().split(/\s+/)
    return local?.endsWith(end) && state === '08'
  })
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
