// While a synchronous standby is away, every commit waits in PostgreSQL without a limit. Clients get a
// response in time that says that the outcome is unknown. They retry with the same id, and no message is lost
// or stored twice.
import { setTimeout as delay } from 'node:timers/promises'
import { eventually, startPostgresPair, type TestDatabase } from '@rouse/testkit'
import { t as file, test } from 'tap'
import { type Answer, apiOf, send } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

/** Time for servers to start, replay and copy on a busy machine. No assertion depends on their speed. */
const patience = { timeoutMs: 120_000, intervalMs: 50 }

/** Long enough for a busy machine to open a connection, so that the statement is sent before it hangs. */
const writeTimeoutMs = 3_000

/**
 * Ten times the promised time, for a busy machine. Without a timeout, requests would wait for the standby.
 */
const answeredMsMax = 10 * writeTimeoutMs

const pair = await startPostgresPair({ synchronous: true })
file.teardown(() => pair.stop())
const node = await sharedBroker({
  database: { url: pair.url } as TestDatabase,
  env: { ROUSE_WORKERS: '1', ROUSE_WRITE_TIMEOUT_MS: String(writeTimeoutMs) },
})
const api = apiOf(node.url)

/** Returns the response. Fails if it does not arrive in time. */
async function inTime(asked: Promise<Answer>): Promise<Answer> {
  const late = delay(answeredMsMax, undefined, { ref: false }).then(() => {
    throw new Error(`no answer within ${answeredMsMax} ms`)
  })
  return Promise.race([asked, late])
}

/** Returns the number of commits of this node's workers that wait for the standby. */
async function hanging(): Promise<number> {
  const [row] = await pair.primary.query<{ count: number }>(
    `select count(*)::int as count from pg_stat_activity
     where wait_event = 'SyncRep' and application_name like 'rouse % worker %'`,
  )
  return row?.count ?? 0
}

const unknown = { status: 503, body: { code: 'outcome_unknown', retryable: true } }
const refused = { status: 503, body: { code: 'database_unavailable', retryable: true } }

test('requests are answered in time while the synchronous standby is away', async (t) => {
  const queue = unique()
  /** The partition of each push and the code of its response, by transaction id. */
  const told = new Map<string, { readonly partition: string; readonly code: string }>()
  const push = async (transactionId: string, partition: string) => {
    const item = { queue, partition, payload: transactionId, transactionId }
    const answer = await inTime(api.push(item))
    told.set(transactionId, { partition, code: answer.body.code ?? 'stored' })
    return answer
  }
  for (const partition of ['a', 'b', 'c', 'd']) {
    await eventually(
      async () => (await push(`first-${partition}`, partition)).status === 201,
      patience,
    )
  }
  const popped = await eventually(async () => {
    const answer = await api.pop(queue)
    return answer.status === 200 ? answer : undefined
  }, patience)
  const [message] = popped.body.messages
  await pair.standby.kill()
  t.teardown(() => pair.standby.start())

  await t.test(
    'a push has an unknown outcome in time, and pushes queued behind it are refused',
    async (tt) => {
      const first = push('hangs-1', 'a')
      await eventually(async () => (await hanging()) === 1, patience)
      const second = push('hangs-2', 'b')
      await eventually(async () => (await hanging()) === 2, patience)
      const queued = await Promise.all(['c', 'd', 'e'].map((one) => push(`queued-${one}`, one)))
      for (const answer of [await first, await second]) {
        tt.match(answer, unknown)
        tt.ok(Number(answer.headers.get('retry-after')) >= 1, 'with a time to come back')
      }
      for (const answer of queued) tt.match(answer, refused)
    },
  )

  await t.test('later requests are rejected at once and take no connection', async (tt) => {
    const more = Array.from({ length: 50 }, (_, i) => push(`more-${i}`, `p${i % 5}`))
    for (const answer of await Promise.all(more)) tt.match(answer, refused)
    tt.equal(await hanging(), 2, 'only the first two commits hang')
  })

  await t.test(
    'acks, leases, transactions and administration are answered in time as well',
    async (tt) => {
      const operations = [
        {
          type: 'push',
          items: [{ queue, partition: 'd', payload: 1, transactionId: 'transacted' }],
        },
      ]
      const schedule = { name: unique(), queue, cron: '0 0 1 1 *', payload: 1 }
      // The first of the hanging pushes keeps the lane of this lease locked.
      const behind = {
        ack: api.ack(message),
        extend: api.post(`/lease/${message.leaseId}/extend`, { seconds: 60 }),
      }
      for (const [name, answer] of Object.entries(behind)) {
        tt.match(await inTime(answer), { status: 503, body: { code: 'partition_locked' } }, name)
      }
      const answers = {
        transaction: api.post('/transaction', { operations }),
        configure: api.post('/configure', { queue: unique(), options: { leaseTime: 7 } }),
        schedule: api.post('/schedules', schedule),
      }
      for (const [name, answer] of Object.entries(answers)) {
        tt.match(await inTime(answer), unknown, name)
      }
      told.set('transacted', { partition: 'd', code: 'outcome_unknown' })
    },
  )

  await t.test('the node stays ready, and pops and reads work', async (tt) => {
    tt.equal((await inTime(send('GET', `${node.url}/ready`))).status, 200)
    tt.equal((await inTime(api.get(`/resources/queues/${queue}`))).status, 200)
    const other = await eventually(async () => {
      const answer = await inTime(api.pop(queue))
      return answer.status === 200 ? answer : undefined
    }, patience)
    tt.not(other.body.messages[0].id, message.id)
  })

  await t.test(
    'a waiting pop that hangs because its group is new is answered at its deadline',
    async (tt) => {
      const asked = api.pop(queue, '?wait=true&timeout=500&consumerGroup=new')
      tt.equal((await inTime(asked)).status, 204)
    },
  )

  await t.test(
    'once the standby is back pushes succeed, and a retry with the same id is stored once',
    async (tt) => {
      await pair.standby.start()
      await pair.inSync()
      await eventually(async () => (await hanging()) === 0, patience)
      const stored = await transactionIds(queue)
      for (const [id, { code }] of told) {
        if (code === 'database_unavailable') tt.notOk(stored.includes(id), `${id}: refused`)
        else tt.ok(stored.includes(id), `${id}: ${code}`)
      }
      for (const [id, { partition }] of told) {
        await eventually(async () => (await push(id, partition)).status === 201, patience)
      }
      tt.same(await transactionIds(queue), [...told.keys()].sort(), 'each is stored once')
    },
  )
})

/** Returns the transaction ids of all stored messages of a queue. */
async function transactionIds(queue: string): Promise<string[]> {
  const answer = await api.get(`/messages?queue=${queue}&limit=1000`)
  const messages = answer.body.messages as { transactionId: string }[]
  return messages.map(({ transactionId }) => transactionId).sort()
}
