// The event stream of real nodes. Two nodes on one database serve all tests of this file.
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { eventually } from '@rouse/testkit'
import { t as root, type Test, test } from 'tap'
import { anonymous } from '../../src/auth/principal.ts'
import { QueueFilter } from '../../src/observe/events/queue-filter.ts'
import { EventStream } from '../../src/worker/event-stream.ts'
import { startCluster, startNode } from '../support/cluster.ts'
import { apiOf, send } from '../support/http.ts'
import { makeKey, sendAs, untilKnown } from '../support/keys.ts'
import { unique } from '../support/shared-broker.ts'
import { readEvents } from './read-events.ts'

const timeout = 60_000
const [one, two] = await startCluster(root as unknown as Test, { nodes: 2 })
if (one === undefined || two === undefined) throw new Error('the cluster has two nodes')
const [first, second] = [apiOf(one.url), apiOf(two.url)]

async function watching(
  url: string,
  key?: string,
): Promise<{ watching: number; watching_wakes: number }> {
  return (await sendAs(key, 'GET', `${url}/stats`)).body.events
}

test('changes of queues on one node come to a stream of another', { timeout }, async (t) => {
  const queue = unique()
  const stream = await readEvents(t, two.url)
  t.equal(stream.status, 200)
  t.match(stream.headers.get('content-type'), /^text\/event-stream/)
  t.ok(stream.headers.get('x-request-id'))
  await stream.next('hello', ({ nodes }) => nodes.length === 2)
  await send('PUT', first.at(`/queues/${queue}`), {})
  await send('PATCH', first.at(`/queues/${queue}`), { options: { retryLimit: 2 } })
  await first.post(`/queues/${queue}/pause`)
  await first.post(`/queues/${queue}/resume`)
  await first.post(`/queues/${queue}/purge`)
  await first.del(`/queues/${queue}`)
  await stream.next('queue', ({ queue: name, change }) => name === queue && change === 'deleted')
  const changes = stream.events.filter(
    ({ name, data }) => name === 'queue' && data.by && data.queue === queue,
  )
  t.same(
    changes.map(({ data }) => data.change),
    ['created', 'configured', 'paused', 'resumed', 'purged', 'deleted'],
  )
  t.match(changes[2]?.data, {
    node: 'node-1',
    by: 'anonymous',
    text: `Queue "${queue}" was paused by anonymous.`,
  })
})

test('rates come once in every second', { timeout }, async (t) => {
  const stream = await readEvents(t, one.url)
  const rates = () => stream.events.filter(({ name }) => name === 'rates').slice(1)
  await eventually(() => rates().length > 10, { timeoutMs: 30_000 })
  // The first one comes at once. A busy machine may be late, but a late one does not delay those after it.
  const seconds = rates().map(({ id }) =>
    Math.floor((Number.parseInt(String(id), 10) - 500) / 1_000),
  )
  const [first = 0] = seconds
  const last = seconds[10] ?? 0
  t.ok(last - first >= 9 && last - first <= 12, seconds.map((one) => one - first).join(' '))
})

test('rates have the sums of all nodes and the backlog', { timeout }, async (t) => {
  const queue = unique()
  const stream = await readEvents(t, one.url, `?queues=${queue},other*`)
  for (const api of [first, second]) {
    for (let i = 0; i < 10; i += 1) await api.push({ queue, payload: i })
  }
  const { data: rates, id } = await stream.next('rates', ({ total }) => total.pushedPerSecond === 2)
  t.match(id, /^\d{13}-\d+-node-1/)
  t.match(rates, { nodes: 2, unreachable: [], queues: [{ queue, pushedPerSecond: 2 }] })
  // A slow list of queues is read again only after a while.
  const { data } = await stream.next('rates', ({ total }) => total.ready === 20)
  t.match(data.total, { lastSecond: { failed: 0 }, queues: 1, waiting: 0 })
  t.match(data.queues, [{ queue, ready: 20, state: 'no_consumers' }])
  const { body } = await first.pop(queue, '?batch=20&partitions=20&autoAck=true')
  t.equal(body.messages.length, 20)
  await stream.next('rates', ({ total }) => total.deliveredPerSecond === 2)
  await stream.next('queue', ({ change, state }) => change === 'state' && state === 'ok')
})

test('a wake-up on another node is shown from the push to the pop', { timeout }, async (t) => {
  const queue = unique()
  const stream = await readEvents(t, one.url, `?wakes=true&groups=true&queues=${queue}`)
  const popped = second.pop(queue, '?wait=true&timeout=20000')
  await stream.next('groups', ({ groups }) => {
    return groups.some(
      (group: Record<string, unknown>) => group.node === 'node-2' && group.waiting === 1,
    )
  })
  await eventually(async () => (await watching(two.url)).watching_wakes > 0)
  await first.push({ queue, payload: 1 })
  t.equal((await popped).body.messages.length, 1)
  const step = (node: string, name: string) =>
    stream.next('wake', (data) => data.node === node && data.step === name)
  t.match((await step('node-1', 'push')).data, { queue, count: 1, skipped: 0 })
  t.match((await step('node-1', 'hint_sent')).data, { queue, to: 'node-2', repeat: false })
  t.match((await step('node-2', 'hint_received')).data, { queue, from: 'node-1' })
  const { data: grant } = await stream.next(
    'wake',
    ({ step: name, source }) => name === 'grant' && source === 'udp',
  )
  t.match(grant, { queue, node: 'node-2', group: 'default' })
  t.ok(grant.ms >= 0 && grant.ms < 1_000)
  const { data: found } = await step('node-2', 'found')
  t.match(found, { queue, source: 'udp', count: 1 })
  t.ok(found.ms > 0)
})

test('wake-ups are reported only to streams that ask for them', { timeout }, async (t) => {
  const queue = unique()
  const stream = await readEvents(t, one.url)
  await stream.next('rates')
  const popped = first.pop(queue, '?wait=true&timeout=20000')
  await first.push({ queue, payload: 1 })
  await popped
  await send('PUT', first.at(`/queues/${queue}`), {})
  await stream.next('queue', (data) => data.queue === queue)
  t.notOk(stream.events.some(({ name }) => name === 'wake' || name === 'groups'))
})

test('a stream is resumed on another node without a gap', { timeout }, async (t) => {
  const [before, missed, later] = [unique('before'), unique('missed'), unique('later')]
  const stream = await readEvents(t, one.url)
  await send('PUT', first.at(`/queues/${before}`), {})
  const { id } = await stream.next('queue', ({ queue }) => queue === before)
  stream.close()
  // One change on each node while no stream is open.
  await send('PUT', first.at(`/queues/${missed}`), {})
  await send('PUT', second.at(`/queues/${missed}`), { options: { retryLimit: 1 } })
  const resumed = await readEvents(t, two.url, '', { 'last-event-id': id as string })
  await send('PUT', second.at(`/queues/${later}`), {})
  await resumed.next('queue', ({ queue }) => queue === later)
  await resumed.next('rates')
  const seen = resumed.events.filter(({ name, data }) => name === 'queue' && data.by)
  const of = (name: string) => seen.filter(({ data: { queue } }) => queue === name)
  t.same(
    of(missed).map(({ data: { change, node } }) => [change, node]),
    [
      ['created', 'node-1'],
      ['configured', 'node-2'],
    ],
  )
  t.equal(of(later).length, 1)
  t.notOk(resumed.events.some(({ name }) => name === 'missed'))
  const ids = seen.map((event) => event.id)
  t.equal(new Set(ids).size, ids.length, 'no event comes twice on one stream')
})

test('a stream that is too old begins with missed', { timeout }, async (t) => {
  const old = await readEvents(t, one.url, '?lastEventId=1600000000000-1-node-1&once=true')
  await old.ended
  t.equal(old.events[0]?.name, 'hello')
  t.match(
    old.events
      .filter(({ name }) => name === 'missed')
      .map(({ data: { node, reason } }) => ({ node, reason })),
    [{ reason: 'restarted' }, { reason: 'restarted' }],
  )
  const wrong = await first.get('/events?lastEventId=yesterday')
  t.match(wrong, { status: 400, body: { errors: [{ field: 'lastEventId' }] } })
  t.match(await first.get('/events?queue=x'), {
    status: 400,
    body: { errors: [{ field: 'queue' }] },
  })
  t.equal((await fetch(`${one.url}/api/v1/events`, { method: 'HEAD' })).status, 405)
})

test('a client that does not read is cut off', { timeout }, async (t) => {
  const options = {
    owner: 'x',
    scope: 'cluster',
    wakes: false,
    groups: false,
    once: false,
  } as const
  const closed = new Promise<number>((resolve) => {
    const server = createServer((_request, response) => {
      const filter = new QueueFilter(anonymous.grants, undefined)
      const stream = new EventStream(response, { ...options, filter })
      stream.pastIsSent()
      let sent = 0
      const fill = setInterval(() => {
        if (stream.isEnded) return
        stream.send('queue', JSON.stringify('x'.repeat(100_000)))
        sent += 1
      }, 1)
      response.once('close', () => {
        clearInterval(fill)
        resolve(sent)
      })
    }).listen(0, '127.0.0.1', () => {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
      socket.on('error', () => {}).pause()
      socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
      t.teardown(() => {
        socket.destroy()
        server.close()
      })
    })
  })
  t.ok((await closed) >= 10, 'a megabyte may wait, besides the buffers of the sockets')
})

test('nodes and workers that come and go are reported', { timeout }, async (t) => {
  const stream = await readEvents(t, one.url)
  const three = await startNode(t, 2, { database: one.database })
  await stream.next('cluster', ({ change, peer }) => change === 'node_joined' && peer === 'node-3')
  const pid = three.log.find(({ msg }) => msg === 'worker is ready')?.workerPid as number
  await eventually(async () => (await watching(three.url)).watching > 0)
  process.kill(pid, 'SIGKILL')
  await stream.next(
    'cluster',
    ({ change, node }) => change === 'worker_restarted' && node === 'node-3',
  )
  const { data } = await stream.next(
    'cluster',
    ({ change, node }) => change === 'aggressive' && node === 'node-3',
  )
  t.match(data, { why: ['sidecar_lost'], text: /sidecar_lost/ })
  await three.stop()
  await stream.next(
    'cluster',
    ({ change, peer }) => /node_(left|dead)/.test(change) && peer === 'node-3',
  )
})

test('a key sees only the queues that it may observe, and its end ends the stream', {
  timeout,
}, async (t) => {
  const admin = await makeKey(one.url, undefined, { preset: 'admin' })
  await untilKnown(one.url, admin.key, 200)
  const [own, other] = [unique('own'), unique('other')]
  const viewer = await makeKey(one.url, admin.key, { preset: 'viewer', queue: 'own*' })
  const authorization = `Bearer ${viewer.key}`
  await untilKnown(one.url, viewer.key, 403)
  const stream = await readEvents(t, one.url, '?wakes=true', { authorization })
  t.equal((await fetch(`${one.url}/api/v1/events`)).status, 401)
  await stream.next('hello')
  for (const queue of [other, own]) {
    await sendAs(admin.key, 'PUT', first.at(`/queues/${queue}`), {})
    await sendAs(admin.key, 'POST', first.at('/push'), { items: [{ queue, payload: 1 }] })
  }
  await stream.next('queue', ({ queue }) => queue === own)
  const { data } = await stream.next('rates', ({ queues }) => queues.length > 0)
  const names = data.queues.map(({ queue }: { queue: string }) => queue)
  t.ok(
    names.every((queue: string) => queue.startsWith('own')),
    `${names}`,
  )
  t.notOk(JSON.stringify(stream.events).includes(other))
  await sendAs(admin.key, 'DELETE', first.at(`/keys/${viewer.id}`))
  await stream.ended
  t.match(stream.events.at(-1), { name: 'end', data: { reason: 'unauthenticated' } })
  await eventually(async () => (await watching(two.url, admin.key)).watching === 0)
  const last = await readEvents(t, two.url, '', { authorization: `Bearer ${admin.key}` })
  await last.next('rates')
  const startedAtMs = performance.now()
  await two.stop()
  t.ok(performance.now() - startedAtMs < 8_000, 'streams do not delay a drain')
  await last.ended
  t.match(last.events.at(-1), { name: 'end', data: { reason: 'draining' } }, 'a drain ends streams')
})
