// The shipped nodes, on an embedded PostgreSQL with durable commits.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '@rouse/database'
import { eventually, freePort } from '@rouse/testkit'
import { keptSeconds } from './load.ts'

export interface GrowthNode {
  readonly name: string
  readonly url: string
  readonly pid: number
}

export interface GrowthCluster {
  readonly server: EmbeddedPostgres
  readonly nodes: readonly GrowthNode[]
  stop(): Promise<void>
}

const main = fileURLToPath(new URL('../../../apps/broker/dist/main.js', import.meta.url))
const workersPerNode = 2

export async function startGrowthCluster(count: number): Promise<GrowthCluster> {
  const server = await startEmbeddedPostgres({
    settings: { shared_buffers: '256MB', max_wal_size: '2GB' },
  })
  const children: ChildProcess[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(children.map(ended))
    await server.stop()
  }
  try {
    const nodes: GrowthNode[] = []
    for (let number = 1; number <= count; number += 1) {
      const { child, url } = await startNode(server.url, number)
      children.push(child)
      nodes.push({ name: `node-${number}`, url, pid: child.pid as number })
    }
    for (const { url } of nodes) {
      await eventually(
        async () => (await fetch(`${url}/ready`).catch(() => undefined))?.status === 200,
        {
          timeoutMs: 60_000,
        },
      )
    }
    return { server, nodes, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startNode(
  databaseUrl: string,
  number: number,
): Promise<{ child: ChildProcess; url: string }> {
  const [port, gossipPort] = [await freePort(), await freePort()]
  const child = spawn(process.execPath, [main], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env.PATH,
      ROUSE_DATABASE_URL: databaseUrl,
      ROUSE_NODE_ID: `node-${number}`,
      ROUSE_PORT: String(port),
      ROUSE_GOSSIP_PORT: String(gossipPort),
      ROUSE_GOSSIP_SECRET: 'a secret of this run alone',
      ROUSE_WORKERS: String(workersPerNode),
      ROUSE_LOG_LEVEL: 'error',
      ROUSE_RETENTION_INTERVAL_MS: '5000',
      ROUSE_COMPLETED_RETENTION_SECONDS: String(keptSeconds.completed),
      ROUSE_DEAD_LETTER_RETENTION_SECONDS: String(keptSeconds.letters),
      ROUSE_IDLE_PARTITION_SECONDS: String(keptSeconds.idlePartition),
    },
  })
  return { child, url: `http://127.0.0.1:${port}` }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}
