// Faults of the database server: killed, restarted, paused; sessions terminated, used up, held open.
import type pg from 'pg'
import type { ChaosCluster } from '../cluster/chaos-cluster.ts'
import { nemesis, pause, untilReady } from './nemesis.ts'
import { endAll, isOfNodes, openSession } from './sessions.ts'

const terminationsSeconds = 0.2
/** The most sessions to open: more than any server of the harness permits. */
const sessionsMax = 400
/** The sessions left for the nodes: a few for each of their processes, far fewer than these may open. */
const sessionsLeft = 36
const squeezeTriesMax = 10
const sessionsAtOnce = 20

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

/** Terminates five sessions a second. */
export const backendTerminations = nemesis('backend-terminations', async (cluster, about) => {
  let ended = 0
  for (let left = about.seconds; left > 0; left -= terminationsSeconds) {
    ended += await terminateOne(cluster)
    await pause(Math.min(left, terminationsSeconds))
  }
  await untilReady(cluster.nodes)
  return { target: `${ended} sessions` }
})

/**
 * Takes every session that the server permits and ends the sessions of the nodes, so that the nodes must
 * reconnect.
 */
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

/**
 * Leaves few sessions for the nodes: ends their idle sessions and takes the free slots. The nodes must work
 * with the sessions that are left.
 */
export const connectionSqueeze = nemesis('connection-squeeze', async (cluster, { seconds }) => {
  const { postgres } = cluster
  const sessions: pg.Client[] = []
  let left = 0
  try {
    await takeAll(postgres.url, sessions)
    for (let tries = 0; tries < squeezeTriesMax; tries += 1) {
      left = await countOfNodes(sessions)
      if (left <= sessionsLeft) break
      await sessions[0]?.query(
        `select pg_terminate_backend(pid, 1000) from pg_stat_activity
          where ${isOfNodes} and state = 'idle' limit ${left - sessionsLeft}`,
      )
      await takeAll(postgres.url, sessions)
    }
    await pause(seconds)
  } finally {
    await endAll(sessions)
  }
  await untilReady(cluster.nodes)
  return { target: `${left} sessions left` }
})

/** Opens several sessions at once, because the nodes compete for them. */
async function takeAll(url: string, sessions: pg.Client[]): Promise<void> {
  while (sessions.length < sessionsMax) {
    const asked = Array.from({ length: sessionsAtOnce }, () => openSession(url))
    const taken = (await Promise.all(asked)).filter((session) => session !== undefined)
    sessions.push(...taken)
    if (taken.length < sessionsAtOnce) return
  }
}

async function countOfNodes([session]: readonly pg.Client[]): Promise<number> {
  const found = await session?.query<{ count: number }>(
    `select count(*)::integer as count from pg_stat_activity where ${isOfNodes}`,
  )
  return found?.rows[0]?.count ?? 0
}

/** Holds a transaction open, which keeps dead rows from being vacuumed. */
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

async function terminateOne({ postgres }: ChaosCluster): Promise<number> {
  const rows = await postgres.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where ${isOfNodes} order by random() limit 1`,
  )
  return rows.length
}
