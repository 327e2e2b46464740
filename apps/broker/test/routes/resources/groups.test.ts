import { test } from 'tap'
import { apiOf } from '../../support/http.ts'
import { sharedBroker, unique } from '../../support/shared-broker.ts'

const { url } = await sharedBroker()
const api = apiOf(url)

test('a group is shown in each of its queues, the unnamed one as default', async (t) => {
  const [queue, other] = [unique('in-a'), unique('in-b')]
  for (const one of [queue, other]) {
    await api.push({ queue: one, payload: 1 }, { queue: one, payload: 2 })
  }
  await api.pop(queue)
  for (const one of [queue, other]) await api.pop(one, '?consumerGroup=mail')
  const shown = await api.get('/groups/mail')
  t.match(shown, {
    status: 200,
    body: {
      consumerGroup: 'mail',
      queues: [
        { queue, consumerGroup: 'mail', ready: 1, leased: 1, retrying: 0, dead: 0 },
        { queue: other, ready: 1, leased: 1 },
      ],
    },
  })
  t.ok(shown.body.queues[0].oldestAgeMs >= 0)
  for (const name of ['default', '__QUEUE_MODE__']) {
    t.match(await api.get(`/groups/${name}/queues/${queue}`), {
      status: 200,
      body: { consumerGroup: 'default', queue, ready: 1, lastSeenAt: /Z$/ },
    })
  }
  t.equal((await api.get(`/groups/default/queues/${other}`)).status, 404)
  t.equal((await api.get('/groups/no-such')).status, 404)
})

test('the list has pages by queue and group', async (t) => {
  const queue = unique('pages')
  await api.push({ queue, payload: 1 })
  for (const group of ['a', 'b', 'c']) await api.pop(queue, `?consumerGroup=${group}`)
  const seen: string[] = []
  let cursor: string | null = ''
  do {
    const { body } = await api.get(`/groups?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
    t.ok(body.groups.length <= 2)
    for (const one of body.groups) seen.push(`${one.queue}/${one.consumerGroup}`)
    cursor = body.cursor
  } while (cursor !== null)
  t.equal(new Set(seen).size, seen.length)
  t.same(
    seen.filter((one) => one.startsWith(queue)),
    ['a', 'b', 'c'].map((group) => `${queue}/${group}`),
  )
  for (const query of ['limit=0', 'cursor=x', 'cursor=W10', 'limit=1001']) {
    t.equal((await api.get(`/groups?${query}`)).status, 400, query)
  }
})

test('a group is moved and deleted', async (t) => {
  const [queue, other] = [unique(), unique()]
  for (const one of [queue, other]) {
    await api.push({ queue: one, payload: 1 })
    await api.pop(one)
  }
  const path = `/groups/default/queues/${queue}`
  t.match(await api.post(`${path}/seek`, { timestamp: '2020-01-01T00:00:00Z' }), {
    status: 200,
    body: { consumerGroup: 'default', queue },
  })
  t.equal((await api.pop(queue)).status, 200)
  t.equal((await api.post(`${path}/seek`, {})).status, 400)
  t.match(await api.del(path), { status: 200, body: { deleted: true } })
  t.equal((await api.del(path)).status, 404)
  t.equal((await api.del('/groups/default')).status, 200)
  t.equal((await api.get(`/groups/default/queues/${other}`)).status, 404)
  t.equal((await api.del('/groups/default')).status, 404)
})
