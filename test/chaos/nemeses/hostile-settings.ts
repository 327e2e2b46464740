// Sets harmful settings on the nodes' role and database, and makes the nodes reconnect with them.
import { eventually } from '@rouse/testkit'
import type pg from 'pg'
import type { ChaosCluster } from '../cluster/chaos-cluster.ts'
import { nemesis, pause, untilReady } from './nemesis.ts'
import { endAll, endSessionsOfNodes, openSession } from './sessions.ts'

const ofRole = {
  default_transaction_isolation: 'serializable',
  lock_timeout: '5ms',
  statement_timeout: '50ms',
  DateStyle: 'SQL, DMY',
  search_path: 'pg_temp',
  client_min_messages: 'error',
  synchronous_commit: 'off',
}
const ofDatabase = {
  TimeZone: 'Asia/Kathmandu',
  IntervalStyle: 'sql_standard',
  bytea_output: 'escape',
  extra_float_digits: '-3',
  array_nulls: 'off',
  standard_conforming_strings: 'off',
  idle_in_transaction_session_timeout: '50ms',
  idle_session_timeout: '500ms',
}
const undoMs = { timeoutMs: 60_000, intervalMs: 200 }

export const hostileSettings = nemesis('hostile-settings', async (cluster, { seconds }) => {
  try {
    await alter(cluster, [
      ...Object.entries(ofRole).map(([name, value]) => `role postgres set ${name} = '${value}'`),
      ...Object.entries(ofDatabase).map(
        ([name, value]) => `database postgres set ${name} = '${value}'`,
      ),
    ])
    await endSessionsOfNodes(cluster.postgres)
    await pause(seconds)
  } finally {
    await eventually(async () => {
      await alter(cluster, ['role postgres reset all', 'database postgres reset all'])
      return true
    }, undoMs)
  }
  await endSessionsOfNodes(cluster.postgres)
  await untilReady(cluster.nodes)
  const count = Object.keys({ ...ofRole, ...ofDatabase }).length
  return { target: `${count} settings of the role and the database` }
})

async function alter({ postgres }: ChaosCluster, changes: readonly string[]): Promise<void> {
  const session: pg.Client | undefined = await openSession(postgres.url)
  if (session === undefined) throw new Error('the database accepts no connection')
  try {
    await session.query('set statement_timeout = 0; set lock_timeout = 0')
    for (const change of changes) await session.query(`alter ${change}`)
  } finally {
    await endAll([session])
  }
}
