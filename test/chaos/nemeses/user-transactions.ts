// Sessions that hold locks on rows of one queue: users' open transactions, and explicit locks. Other queues
// must not be affected, and an open `enqueue` or `ack_in` must not delay pushes even to its own queue.
import type pg from 'pg'
import type { ChaosClient } from '../clients/chaos-client.ts'
import type { RawMessage } from '../clients/raw-client.ts'
import type { ChaosCluster } from '../cluster/chaos-cluster.ts'
import type { MayHarm, Outcome, QueueRecord } from '../history/records.ts'
import { type About, type Made, type Nemesis, nemesis, pause, pick } from './nemesis.ts'
import { endAll, openSession } from './sessions.ts'

const noQueues: MayHarm = { pushes: [], pops: [] }
const popMs = 3_000
const configureSeconds = 1
const inFlightMax = 100_000
/** The longest wait for a row lock. It is long because busy rows are locked most of the time. */
const lockMsMax = 5_000

/**
 * A transaction enqueues into existing partitions and a new one, stays open, and is then committed or rolled
 * back.
 */
export const openEnqueue = nemesis(
  'open-enqueue',
  async (cluster, about) => {
    const { queue } = pickQueue(about)
    const commits = about.random() < 0.5
    await held(cluster, about, async (session) => {
      const settle = await enqueue(about.client, session, queue, ['Default', 'Default', ''])
      await pause(about.seconds)
      await settle(commits)
    })
    const end = commits ? 'committed' : 'rolled back'
    return { target: `${queue}, ${end}`, mayHarm: noQueues }
  },
  { isLocal: true },
)

/**
 * While a transaction with an ack is open, an operator needs the lease that the transaction holds, and is
 * refused.
 */
export const openAckIn = nemesis('open-ack-in', ackSlowly, { isLocal: true })

export const lockedQueue = locked('locked-queue', [
  'select from rouse.queues q where q.name = $1 for update',
])

export const lockedPartitions = locked('locked-partitions', [
  `select from rouse.partitions p join rouse.queues q on q.id = p.queue_id
    where q.name = $1 order by p.id for update of p`,
])

export const lockedLanes = locked('locked-lanes', [
  `select from rouse.lanes l join rouse.groups g on g.id = l.group_id join rouse.queues q on q.id = g.queue_id
    where q.name = $1 order by l.partition_id, l.group_id for update of l`,
])

export const lockedLeases = locked('locked-leases', [
  `select from rouse.leases s join rouse.groups g on g.id = s.group_id join rouse.queues q on q.id = g.queue_id
    where q.name = $1 order by s.id, s.partition_id for update of s`,
])

/**
 * A session locks rows. Meanwhile a message is enqueued to a new partition, which needs the row of the queue.
 */
function locked(name: string, statements: readonly string[]): Nemesis {
  return nemesis(
    name,
    async (cluster, about): Promise<Made> => {
      const { queue } = pickQueue(about)
      let rows = 0
      await held(cluster, about, async (session) => {
        await session.query(`set local lock_timeout = ${lockMsMax}`)
        try {
          for (const statement of statements) {
            rows += (await session.query(statement, [queue])).rowCount ?? 0
          }
        } catch (error) {
          if ((error as { code?: string }).code !== '55P03') throw error
        }
        await enqueueOne(cluster, about, queue)
        await pause(about.seconds)
      })
      return { target: `${rows} rows of ${queue}`, mayHarm: { pushes: [queue], pops: [queue] } }
    },
    { isLocal: true },
  )
}

async function ackSlowly(cluster: ChaosCluster, about: About): Promise<Made> {
  const { client, queues, seconds, random } = about
  // Preferably a queue on which operators work anyway.
  const operated = queues.filter(({ workload }) => workload === 'purge')
  const { queue, groups } =
    operated.length > 0 && random() < 0.7 ? pick(operated, random) : pickQueue(about)
  const group = pick(groups, random)
  const commits = random() < 0.5
  const raw = client.raw()
  const pop = { queue, group, batch: 1, partitions: 1, waitMs: popMs }
  const { body: [message] = [] } = await raw.pop(pop)
  if (message === undefined) return { target: `no rows of ${queue}`, mayHarm: noQueues }
  await held(cluster, about, async (session) => {
    const settle = await ackIn(client, session, message)
    // The operator sets a new in-flight limit, which locks all leases of the queue.
    await raw.configure(queue, { options: { maxInFlight: inFlightMax } })
    await pause(Math.max(configureSeconds, seconds))
    await settle(commits)
  })
  await raw.configure(queue, { options: { maxInFlight: 0 } })
  const end = commits ? 'committed' : 'rolled back'
  return { target: `${queue}, ${end}`, mayHarm: { pushes: [], pops: [queue] } }
}

/** A queue whose consumers understand the message, and that has no time limit for wake-ups. */
function pickQueue({ queues, random }: About): QueueRecord {
  return pick(
    queues.filter(({ stage, wakeMsMax }) => stage === undefined && wakeMsMax === undefined),
    random,
  )
}

async function held(
  { postgres }: ChaosCluster,
  { seconds }: About,
  work: (session: pg.Client) => Promise<void>,
): Promise<void> {
  const session = await openSession(postgres.url)
  if (session === undefined) throw new Error('the database accepts no connection')
  try {
    await session.query(`set statement_timeout = ${Math.round(seconds * 1_000) + lockMsMax}`)
    await session.query('begin')
    await work(session)
    await session.query('rollback')
  } finally {
    await endAll([session])
  }
}

type Settle = (commits: boolean) => Promise<void>

async function enqueueOne(cluster: ChaosCluster, about: About, queue: string): Promise<void> {
  await held(cluster, about, async (session) => {
    await (await enqueue(about.client, session, queue, ['']))(true)
  })
}

/** An empty name stands for a partition that does not exist. */
async function enqueue(
  client: ChaosClient,
  session: pg.Client,
  queue: string,
  partitions: readonly string[],
): Promise<Settle> {
  const items = partitions.map((name) => {
    const value = client.newValue()
    return { queue, partition: name === '' ? `new ${value}` : name, value }
  })
  const call = { kind: 'push', by: 'sql', items } as const
  const end = client.recorder.begin(call)
  for (const { partition, value } of items) {
    const payload = JSON.stringify({ v: value })
    const statement = 'select rouse.enqueue($1, $2, partition => $3)'
    await session.query(statement, [queue, payload, partition])
  }
  return async (commits) => end(call, { outcome: await settled(session, commits) })
}

async function ackIn(
  client: ChaosClient,
  session: pg.Client,
  message: RawMessage,
): Promise<Settle> {
  const { receipt, transactionId, partitionId, consumerGroup: group, data } = message
  const ack = { receipt, transactionId, partitionId, value: data.v, status: 'completed' } as const
  const call = { kind: 'ack', group, acks: [ack] } as const
  const end = client.recorder.begin(call)
  try {
    await session.query('select rouse.ack_in($1)', [receipt])
  } catch {
    // The message was purged meanwhile.
    await session.query('rollback')
    end({ ...call, acks: [{ ...ack, success: false }] }, { outcome: 'fail' })
    return async () => {}
  }
  return async (commits) => {
    const outcome = await settled(session, commits)
    const success = outcome === 'ok' ? { success: true } : {}
    end({ ...call, acks: [{ ...ack, ...success }] }, { outcome })
  }
}

async function settled(session: pg.Client, commits: boolean): Promise<Outcome> {
  try {
    await session.query(commits ? 'commit' : 'rollback')
    return commits ? 'ok' : 'fail'
  } catch {
    return commits ? 'unknown' : 'fail'
  }
}
