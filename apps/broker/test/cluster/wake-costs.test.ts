// What one message costs besides its push and its ack: pops, sends between processes, and datagrams. Messages are
// pushed one at a time, so the numbers are exact.
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import type { RunningBroker } from '../support/broker.ts'
import { startCluster } from '../support/cluster.ts'
import { type Answer, apiOf, send } from '../support/http.ts'
import { countingDatabase, popsOf } from '../support/query-count.ts'

type Json = Answer['body']

/** No fallback poll, and long timeouts, so that a busy machine changes no number. */
const never = '600000'
const env = {
  ROUSE_WORKERS: '2',
  POP_WAIT_IDLE_INTERVAL_MS: never,
  POP_WAIT_BASE_INTERVAL_MS: never,
  POP_WAIT_MAX_INTERVAL_MS: never,
  POP_WAIT_LOCAL_FIRST_MS: '10000',
  NOTIFY_DELIVERY_TIMEOUT_MS: '10000',
}
const timeout = 120_000

interface Costs {
  readonly pops: number
  readonly sends: number
  readonly datagrams: number
}

async function start(t: Test, nodes: number, more: Readonly<Record<string, string>> = {}) {
  const database = await countingDatabase(t)
  const cluster = await startCluster(t, { nodes, database, env: { ...env, ...more } })
  const total = async (): Promise<Costs> => {
    const stats = await Promise.all(cluster.map(({ url }) => send('GET', `${url}/stats`)))
    const sum = (of: (body: Json) => number): number =>
      stats.reduce((count, { body }) => count + of(body), 0)
    return {
      pops: await popsOf(database),
      sends: sum(({ ipc }) => ipc.sends),
      datagrams: sum(({ gossip }) => gossip.hintDatagramsSent),
    }
  }
  return {
    apis: cluster.map(({ url }) => apiOf(url)),
    /** Begins to wait; resolves with a function that returns the answer. */
    waits: async (index: number, query = '') => {
      const node = cluster[index] as RunningBroker
      const before = await waitingOn(node)
      const answer = apiOf(node.url).pop('q', `?wait=true&timeout=60000${query}`)
      await eventually(async () => (await waitingOn(node)) === before + 1)
      await settled(cluster)
      return () => answer
    },
    /** The costs of what `act` does, once nothing is in flight. */
    costsOf: async (act: () => Promise<unknown>): Promise<Costs> => {
      const before = await total()
      await act()
      await settled(cluster)
      const after = await total()
      return {
        pops: after.pops - before.pops,
        sends: after.sends - before.sends,
        datagrams: after.datagrams - before.datagrams,
      }
    },
  }
}

async function waitingOn({ url }: RunningBroker): Promise<number> {
  return (await send('GET', `${url}/stats`)).body.waiting.total
}

/** No pop is in flight, and the counts stay as they are. */
async function settled(cluster: readonly RunningBroker[]): Promise<void> {
  let last = ''
  await eventually(
    async () => {
      const stats = await Promise.all(cluster.map(({ url }) => send('GET', `${url}/stats`)))
      const now = JSON.stringify(
        stats.map(({ body }) => [
          body.ipc.sends,
          body.gossip.hintDatagramsSent,
          body.group_backoff.groups_in_flight,
        ]),
      )
      const isSettled =
        now === last && stats.every(({ body }) => body.group_backoff.groups_in_flight === 0)
      last = now
      return isSettled
    },
    { intervalMs: 250, timeoutMs: 20_000 },
  )
}

test('one message to a waiter of the same worker', { timeout }, async (t) => {
  const { apis, waits, costsOf } = await start(t, 2, { ROUSE_WORKERS: '1' })
  const [a] = apis as [ReturnType<typeof apiOf>]
  const first = await waits(0)
  await a.push({ queue: 'q', payload: 0 })
  await a.ack((await first()).body.messages[0])

  for (const round of [1, 2, 3]) {
    let answer: () => Promise<Answer> = first
    const returning = await costsOf(async () => {
      answer = await waits(0)
    })
    t.same(returning, { pops: 0, sends: 1, datagrams: 0 }, `a returning consumer, round ${round}`)
    const pushed = await costsOf(async () => {
      await a.push({ queue: 'q', payload: round })
      await answer()
    })
    // The push delivers the message. The primary gets the hint and the number of waiters in one message.
    t.same(pushed, { pops: 0, sends: 1, datagrams: 0 }, `a push, round ${round}`)
    const acked = await costsOf(async () => {
      const { body } = await answer()
      t.equal((await a.ack(body.messages[0])).status, 200)
    })
    t.same(
      acked,
      { pops: 0, sends: 0, datagrams: 0 },
      `the ack of the last message, round ${round}`,
    )
  }
})

test('one message to a waiter of the same node that cannot get it from the push', {
  timeout,
}, async (t) => {
  const { apis, waits, costsOf } = await start(t, 2)
  const [a] = apis as [ReturnType<typeof apiOf>]
  // Acknowledged on delivery: as for a waiter of another worker, a pop must take the message.
  const first = await waits(0, '&autoAck=true')
  await a.push({ queue: 'q', payload: 0 })
  await first()
  for (const round of [1, 2, 3]) {
    let answer: () => Promise<Answer> = first
    const returning = await costsOf(async () => {
      answer = await waits(0, '&autoAck=true')
    })
    t.same(returning, { pops: 0, sends: 1, datagrams: 0 }, `a returning consumer, round ${round}`)
    const pushed = await costsOf(async () => {
      await a.push({ queue: 'q', payload: round })
      await answer()
    })
    t.same(pushed, { pops: 1, sends: 3, datagrams: 0 }, `a push, round ${round}`)
  }
})

test('one message to a waiter of another node', { timeout }, async (t) => {
  const { apis, waits, costsOf } = await start(t, 3)
  const [a, b] = apis as [ReturnType<typeof apiOf>, ReturnType<typeof apiOf>]
  // Both other nodes have waiters, so one of them is asked.
  const answers = [await waits(1), await waits(2)]
  for (const round of [1, 2]) {
    let received: Answer['body']
    const pushed = await costsOf(async () => {
      await a.push({ queue: 'q', payload: round })
      const answer = await Promise.race(answers.map((one) => one()))
      received = answer.body
    })
    // A hint to one node, and its report.
    t.same(pushed, { pops: 1, sends: 3, datagrams: 2 }, `a push, round ${round}`)
    const acked = await costsOf(() => b.ack(received.messages[0]))
    t.same(acked, { pops: 0, sends: 0, datagrams: 0 }, `the ack, round ${round}`)
    for (const index of [1, 2]) {
      const isAnswered = await Promise.race([
        (answers[index - 1] as () => Promise<Answer>)().then(() => true),
        new Promise<boolean>((resolve) => setImmediate(resolve, false)),
      ])
      if (!isAnswered) continue
      const returning = await costsOf(async () => {
        answers[index - 1] = await waits(index)
      })
      t.same(returning, { pops: 0, sends: 1, datagrams: 0 }, `a returning consumer, round ${round}`)
    }
  }
})
