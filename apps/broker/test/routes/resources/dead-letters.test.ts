import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { apiOf } from '../../support/http.ts'
import { sharedBroker, unique } from '../../support/shared-broker.ts'

const { url } = await sharedBroker()
const api = apiOf(url)

/** Makes dead letters of these payloads; returns the ids of their messages. */
async function bury(queue: string, ...payloads: unknown[]): Promise<string[]> {
  const { body } = await api.push(...payloads.map((payload) => ({ queue, payload })))
  for (const _ of payloads) {
    const [message] = (await api.pop(queue)).body.messages
    await api.ack(message, 'dlq', { errorCode: 'E_GONE', error: 'gone' })
  }
  return body.map(({ id }: { id: string }) => id)
}

test('a dead letter has the id that the push returned, and its own as letterId', async (t) => {
  const queue = unique()
  const [id] = await bury(queue, { n: 1 })
  const { status, body } = await api.get(`/dead-letters?queue=${queue}`)
  t.equal(status, 200)
  t.match(body, {
    deadLetters: [
      { id, messageId: id, letterId: /^\d+$/, consumerGroup: 'default', data: { n: 1 } },
    ],
    cursor: null,
  })
  const [letter] = body.deadLetters
  for (const one of [id, letter.letterId]) {
    const shown = await api.get(`/dead-letters/${one}`)
    t.same(shown.body.deadLetters, [letter])
  }
  t.equal((await api.get('/dead-letters/999999')).status, 404)
  t.equal((await api.get('/dead-letters/x')).status, 404)
})

test('the list has pages, newest first, and filters', async (t) => {
  const queue = unique()
  const ids = await bury(queue, 1, 2, 3)
  const first = (await api.get(`/dead-letters?queue=${queue}&limit=2`)).body
  t.same(
    first.deadLetters.map(({ data }: { data: number }) => data),
    [3, 2],
  )
  await bury(queue, 4)
  const rest = await api.get(`/dead-letters?queue=${queue}&limit=2&cursor=${first.cursor}`)
  t.match(rest.body, { deadLetters: [{ id: ids[0] }], cursor: null }, 'a new one moves no page')
  const count = async (query: string) =>
    (await api.get(`/dead-letters?queue=${queue}&${query}`)).body.deadLetters.length
  t.equal(await count('errorCode=E_GONE&consumerGroup=default'), 4)
  t.equal(await count('errorCode=E_OTHER'), 0)
  t.equal(await count('to=2020-01-01T00:00:00Z'), 0)
  for (const query of ['limit=0', 'cursor=x', 'offset=1', 'from=x']) {
    t.equal((await api.get(`/dead-letters?${query}`)).status, 400, query)
  }
})

test('errors are counted, and dead letters deleted or redriven', async (t) => {
  const queue = unique()
  const [first] = await bury(queue, 1, 2)
  t.match((await api.get(`/dead-letters/errors?queue=${queue}`)).body, {
    errors: [{ errorCode: 'E_GONE', count: 2, consumerGroup: 'default' }],
  })
  const started = await api.post('/dead-letters/redrives', { queue, where: { ids: [first] } })
  t.equal(started.status, 202)
  const location = started.headers.get('location') as string
  t.equal(location, `/api/v1/dead-letters/redrives/${started.body.id}`)
  await eventually(async () => {
    const { body } = await api.get(`/dead-letters/redrives/${started.body.id}`)
    return body.state === 'done'
  })
  t.match((await api.pop(queue)).body, { messages: [{ data: 1 }] })
  t.equal((await api.del(`/dead-letters/redrives/${started.body.id}`)).status, 200)
  t.match((await api.del(`/dead-letters?queue=${queue}`)).body, { queue, deleted: 1 })
  t.equal((await api.del('/dead-letters')).status, 400)
})
