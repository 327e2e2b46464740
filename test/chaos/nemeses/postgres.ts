// The database server: killed, restarted, stopped for a while, its sessions ended.
import { eventually } from '@rouse/testkit'
import type { ChaosCluster } from '../harness/chaos-cluster.ts'
import { nemesis, pause, readyMsMax, untilReady } from './nemesis.ts'
import { pauseAll } from './nodes.ts'

const terminationsSeconds = 0.2

export const postgresKill = nemesis(
  'postgres-kill',
  async (cluster, { seconds }) => {
    const { postgres, nodes } = cluster
    postgres.hold()
    await postgres.kill()
    await pause(seconds)
    await postgres.release()
    await untilReady(nodes)
    return { target: 'the database server' }
  },
  { forgetsLeases: true },
)

export const postgresRestart = nemesis('postgres-restart', async ({ postgres, nodes }) => {
  await postgres.restart()
  await untilReady(nodes)
  return { target: 'the database server' }
})

export const postgresPause = nemesis('postgres-pause', async ({ postgres, nodes }, { seconds }) => {
  await pauseAll(postgres.pids(), seconds)
  await untilReady(nodes)
  return { target: 'all processes of the database server' }
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

async function terminateOne({ postgres }: ChaosCluster): Promise<number> {
  const rows = await postgres.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where backend_type = 'client backend' and application_name <> 'chaos'
      order by random() limit 1`,
  )
  return rows.length
}

export async function untilWritable({ postgres }: ChaosCluster): Promise<void> {
  await eventually(() => postgres.query('select txid_current()'), {
    timeoutMs: readyMsMax,
    intervalMs: 200,
  })
}
