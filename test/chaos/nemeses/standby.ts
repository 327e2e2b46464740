// Faults of replication: failovers, a lost standby, cancelled waits for the standby.
import { readFileSync } from 'node:fs'
import { eventually } from '@rouse/testkit'
import type { ChaosCluster } from '../cluster/chaos-cluster.ts'
import { signal } from '../cluster/processes.ts'
import type { SupervisedServer } from '../cluster/supervised-server.ts'
import type { TcpMode } from '../network/tcp-relay.ts'
import { nemesis, pause, untilReady } from './nemesis.ts'

/** How long the old primary keeps running behind its fence. */
const fencedSeconds = 1
const cancelsSeconds = 0.1
const waitersMsMax = 20_000

async function lacksStandby({ postgres }: ChaosCluster): Promise<string | undefined> {
  return postgres.standby === undefined ? 'a standby' : undefined
}

async function lacksSynchronous({ postgres }: ChaosCluster): Promise<string | undefined> {
  return postgres.standbyKind === 'sync' ? undefined : 'a synchronous standby'
}

const forgets = { forgetsLeases: true }

export const postgresFailover = nemesis(
  'postgres-failover',
  async (cluster) => {
    const { postgres } = cluster
    const old = postgres.primary
    old.hold()
    await old.kill()
    fence(cluster, old)
    await postgres.promoteStandby()
    await settle(cluster, old)
    return { target: `from ${old.server.name} to ${postgres.primary.server.name}` }
  },
  { ...forgets, lacks: lacksStandby },
)

/** The primary is frozen, replaced by its standby, and resumed behind its fence. */
export const postgresFreezeFailover = nemesis(
  'postgres-freeze-failover',
  async (cluster) => {
    const { postgres } = cluster
    const old = postgres.primary
    old.hold()
    old.server.freeze()
    await pause(fencedSeconds)
    fence(cluster, old)
    await postgres.promoteStandby()
    old.server.thaw()
    await pause(fencedSeconds)
    await settle(cluster, old)
    return { target: `from ${old.server.name} to ${postgres.primary.server.name}` }
  },
  { ...forgets, lacks: lacksStandby },
)

/**
 * Commits that wait for the standby are cancelled, which PostgreSQL reports as success with a warning. Then
 * the standby, which does not have these commits, takes over.
 */
export const syncCancel = nemesis(
  'sync-cancel',
  async (cluster, { seconds }) => {
    const { postgres } = cluster
    const [old, standby] = [postgres.primary, postgres.standby as SupervisedServer]
    const receiver = standby.server.pids().find(isReceiver)
    let cancelled = 0
    try {
      if (receiver !== undefined) signal(receiver, 'SIGSTOP')
      await eventually(() => waiters(cluster), { timeoutMs: waitersMsMax }).catch(() => 0)
      for (let left = seconds; left > 0; left -= cancelsSeconds) {
        cancelled += await cancelWaiters(cluster)
        await pause(Math.min(left, cancelsSeconds))
      }
    } finally {
      standby.hold()
      old.hold()
      await old.kill()
      fence(cluster, old)
      // This also stops the standby's WAL receiver, so everything that the receiver has not read yet is lost.
      await standby.kill()
      await standby.release()
    }
    await postgres.promoteStandby()
    await settle(cluster, old)
    return { target: `${cancelled} waiting commits` }
  },
  { ...forgets, lacks: lacksSynchronous },
)

/** With a synchronous standby, commits wait until it is back. */
export const standbyLost = nemesis(
  'standby-lost',
  async ({ postgres, nodes }, { seconds }) => {
    const standby = postgres.standby as SupervisedServer
    standby.hold()
    await standby.kill()
    await pause(seconds)
    await standby.release()
    await postgres.untilInSync()
    await untilReady(nodes)
    return { target: standby.server.name }
  },
  { lacks: lacksStandby },
)

/** Makes the old primary unreachable in any state. */
function fence(cluster: ChaosCluster, server: SupervisedServer): void {
  setWires(cluster, server, { kind: 'reject' })
}

/** Once the nodes have found the new primary, the old one becomes its standby. */
async function settle(cluster: ChaosCluster, old: SupervisedServer): Promise<void> {
  await cluster.postgres.untilWritable()
  await untilReady(cluster.nodes)
  await cluster.postgres.reunite()
  setWires(cluster, old, { kind: 'forward' })
}

function setWires({ postgres, wires }: ChaosCluster, server: SupervisedServer, to: TcpMode): void {
  const index = postgres.indexOf(server)
  for (const relays of [...wires.database, wires.sql]) relays[index]?.set(to)
}

function isReceiver(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('walreceiver')
  } catch {
    return false
  }
}

async function waiters({ postgres }: ChaosCluster): Promise<number> {
  const rows = await postgres.query(
    `select from pg_stat_activity where wait_event = 'SyncRep' and backend_type = 'client backend'`,
  )
  return rows.length
}

async function cancelWaiters({ postgres }: ChaosCluster): Promise<number> {
  const rows = await postgres.query(
    `select pg_cancel_backend(pid) from pg_stat_activity
      where wait_event = 'SyncRep' and backend_type = 'client backend'`,
  )
  return rows.length
}
