// Faults of the disk under the database: full, slow, failing, without power.
import type { ChaosCluster } from '../cluster/chaos-cluster.ts'
import { nemesis, pause, untilReady } from './nemesis.ts'

const slowMs = 300
const failSeconds = 1
const switchesSeconds = 0.1

async function lacksDisk({ lacks }: ChaosCluster): Promise<string | undefined> {
  return lacks.disk
}

async function lacksFsync({ lacks }: ChaosCluster): Promise<string | undefined> {
  return lacks.fsync
}

export const diskFull = nemesis(
  'disk-full',
  async (cluster, { seconds }) => {
    try {
      await cluster.disk?.fill()
      // Existing WAL files still have room. Switching to new files uses up that room at once.
      for (let left = seconds; left > 0; left -= switchesSeconds) {
        await cluster.postgres.query('select pg_switch_wal()').catch(() => {})
        await pause(Math.min(left, switchesSeconds))
      }
    } finally {
      await cluster.disk?.free()
    }
    await recover(cluster)
    return { target: 'the disk of the database' }
  },
  { forgetsLeases: true, lacks: lacksDisk },
)

export const fsyncSlow = nemesis(
  'fsync-slow',
  async (cluster, { seconds }) => {
    try {
      await cluster.fsync?.harm(`slow ${slowMs}`)
      await pause(seconds)
    } finally {
      await cluster.fsync?.heal()
    }
    await recover(cluster)
    return { target: `each flush takes ${slowMs} ms longer` }
  },
  { lacks: lacksFsync },
)

/** PostgreSQL treats a failed flush as a crash and recovers from the WAL. */
export const fsyncFail = nemesis(
  'fsync-fail',
  async (cluster, { seconds }) => {
    try {
      await cluster.fsync?.harm('fail')
      await pause(Math.min(seconds, failSeconds))
    } finally {
      await cluster.fsync?.heal()
    }
    await recover(cluster)
    return { target: 'every flush' }
  },
  { forgetsLeases: true, lacks: lacksFsync },
)

/** Affects primary and standby, which share the disk. */
export const powerLoss = nemesis(
  'power-loss',
  async (cluster, { seconds }) => {
    const { disk, postgres } = cluster
    for (const server of postgres.servers) server.hold()
    try {
      await disk?.losePower()
      await Promise.all(postgres.servers.map((server) => server.kill()))
    } finally {
      await disk?.restorePower()
    }
    await pause(seconds)
    await recover(cluster)
    return { target: 'the disk of the database' }
  },
  { forgetsLeases: true, lacks: lacksDisk },
)

async function recover({ postgres, nodes }: ChaosCluster): Promise<void> {
  await postgres.heal()
  await untilReady(nodes)
}
