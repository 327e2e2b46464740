// The database server: killed, restarted, stopped for a while; its sessions ended, used up, held open.
import pg from 'pg'
import type { ChaosCluster } from '../harness/chaos-cluster.ts'
import { within } from '../harness/deadline.ts'
import { nemesis, pause, untilReady } from './nemesis.ts'

const terminationsSeconds = 0.2
/** More than any server of the harness permits. */
const sessionsMax = 400
const sessionMsMax = 10_000

export const postgresKill = nemesis(
  'postgres-kill',
  async ({ postgres, nodes }, { seconds }) => {
    const { primary } = postgres
    primary.hold()
    await primary.kill()
    await pause(seconds)
    await primary.release()
    await postgres.untilWritable()
    await untilReady(nodes)
    return { target: primary.server.name }
  },
  { forgetsLeases: true },
)

export const postgresRestart = nemesis('postgres-restart', async ({ postgres, nodes }) => {
  const { primary } = postgres
  primary.hold()
  await primary.end()
  await primary.release()
  await untilReady(nodes)
  return { target: primary.server.name }
})

export const postgresPause = nemesis('postgres-pause', async ({ postgres, nodes }, { seconds }) => {
  const { server } = postgres.primary
  try {
    server.freeze()
    await pause(seconds)
  } finally {
    server.thaw()
  }
  await untilReady(nodes)
  return { target: server.name }
})

/** Five a second, as an administrator does whose patience is at an end. */
export const backendTerminations = nemesis('backend-terminations', async (cluster, about) => {
  let ended = 0
  for (let left = about.seconds; left > 0; left -= terminationsSeconds) {
    ended += await terminateOne(cluster)
    await pause(Math.min(left, terminationsSeconds))
  }
  await untilReady(cluster.nodes)
  return { target: `${ended} sessions` }
})

/** Every session that the server permits is taken; those of the nodes are ended, so that they must ask. */
export const connectionLimit = nemesis('connection-limit', async (cluster, { seconds }) => {
  const sessions: pg.Client[] = []
  try {
    while (sessions.length < sessionsMax) {
      const session = await openSession(cluster.postgres.url)
      if (session === undefined) break
      sessions.push(session)
    }
    await sessions[0]?.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where ${isOfNodes}`,
    )
    while (sessions.length < sessionsMax) {
      const session = await openSession(cluster.postgres.url)
      if (session === undefined) break
      sessions.push(session)
    }
    await pause(seconds)
  } finally {
    await endAll(sessions)
  }
  await untilReady(cluster.nodes)
  return { target: `${sessions.length} sessions` }
})

/** Transactions that stay open keep dead rows from being cleared away. */
export const pinnedXmin = nemesis('pinned-xmin', async ({ postgres, nodes }, { seconds }) => {
  const session = await openSession(postgres.url)
  try {
    await session?.query('begin isolation level repeatable read')
    await session?.query('select pg_current_xact_id(), count(*) from pg_class')
    await pause(seconds)
  } finally {
    await endAll(session === undefined ? [] : [session])
  }
  await untilReady(nodes)
  return { target: 'one transaction' }
})

const isOfNodes = `backend_type = 'client backend'
  and application_name not in ('chaos', 'rouse pair')`

async function terminateOne({ postgres }: ChaosCluster): Promise<number> {
  const rows = await postgres.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where ${isOfNodes} order by random() limit 1`,
  )
  return rows.length
}

/** Undefined where the server takes no more. */
async function openSession(connectionString: string): Promise<pg.Client | undefined> {
  const session = new pg.Client({
    connectionString,
    application_name: 'chaos',
    connectionTimeoutMillis: sessionMsMax,
    query_timeout: sessionMsMax,
  })
  session.on('error', () => {})
  try {
    await session.connect()
    return session
  } catch {
    await within(sessionMsMax, 'the end of a session', session.end()).catch(() => {})
    return undefined
  }
}

async function endAll(sessions: readonly pg.Client[]): Promise<void> {
  const ends = sessions.map((session) => session.end())
  await within(sessionMsMax, 'the end of the sessions', Promise.all(ends)).catch(() => {})
}
