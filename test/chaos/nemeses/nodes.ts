// Faults of nodes and workers: killed, terminated, and paused.
import type { ChaosCluster } from '../cluster/chaos-cluster.ts'
import type { ChaosNode } from '../cluster/chaos-node.ts'
import { killAll, signal } from '../cluster/processes.ts'
import { type About, nemesis, pause, pick, untilReady } from './nemesis.ts'

/** The pause between kills: long enough for the replacement worker to serve requests. */
const workerKillsSeconds = 2
/** The least duration of a long pause: several times as long as the leases of the harness. */
const longPauseSecondsMin = 12

export const workerKill = nemesis('worker-kill', async ({ nodes }, { random, seconds }) => {
  const killed: number[] = []
  for (let left = seconds; left > 0; left -= workerKillsSeconds) {
    const workers = nodes.flatMap((node) => node.workerPids())
    if (workers.length > 0) {
      const pid = pick(workers, random)
      if (signal(pid, 'SIGKILL')) killed.push(pid)
    }
    await pause(Math.min(left, workerKillsSeconds))
  }
  await untilReady(nodes)
  return { target: `workers ${killed.join(', ')}` }
})

export const primaryKill = nemesis('primary-kill', async ({ nodes }, { random, seconds }) => {
  const node = pick(nodes, random)
  node.hold()
  if (node.pid !== undefined) signal(node.pid, 'SIGKILL')
  await pause(seconds)
  await backUp([node])
  return { target: `the primary process of ${node.id}` }
})

export const nodeKill = nemesis('node-kill', async ({ nodes }, { random, seconds }) => {
  const node = pick(nodes, random)
  await killNodes([node], seconds)
  return { target: node.id }
})

export const allNodesKill = nemesis('all-nodes-kill', async ({ nodes }, { seconds }) => {
  await killNodes(nodes, seconds)
  return { target: 'all nodes' }
})

/** Terminates one node at a time, and waits until it is ready again before the next. */
export const rollingSigterm = nemesis('rolling-sigterm', async ({ nodes }) => {
  for (const node of nodes) {
    node.hold()
    try {
      await node.terminate()
    } finally {
      await backUp([node])
    }
  }
  return { target: nodes.map(({ id }) => id).join(', ') }
})

export const workerPause = nemesis('worker-pause', (cluster, about) =>
  pauseWorker(cluster, { ...about, seconds: Math.min(about.seconds, 2) }),
)

export const workerPauseLong = nemesis('worker-pause-long', (cluster, about) =>
  pauseWorker(cluster, { ...about, seconds: Math.max(about.seconds, longPauseSecondsMin) }),
)

export const nodePause = nemesis('node-pause', async ({ nodes }, { random, seconds }) => {
  const node = pick(nodes, random)
  await pauseAll(node.pids(), seconds)
  await untilReady([node])
  return { target: node.id }
})

export async function backUp(nodes: readonly ChaosNode[]): Promise<void> {
  for (const node of nodes) node.release()
  await untilReady(nodes)
}

export async function pauseAll(pids: readonly number[], seconds: number): Promise<void> {
  try {
    for (const pid of pids) signal(pid, 'SIGSTOP')
    await pause(seconds)
  } finally {
    for (const pid of pids) signal(pid, 'SIGCONT')
  }
}

async function killNodes(nodes: readonly ChaosNode[], seconds: number): Promise<void> {
  for (const node of nodes) node.hold()
  killAll(nodes.flatMap((node) => node.pids()))
  await pause(seconds)
  await backUp(nodes)
}

async function pauseWorker(
  { nodes }: ChaosCluster,
  { random, seconds }: Pick<About, 'random' | 'seconds'>,
): Promise<{ target: string }> {
  const node = pick(nodes, random)
  const workers = node.workerPids()
  const pid = workers.length === 0 ? undefined : pick(workers, random)
  if (pid !== undefined) await pauseAll([pid], seconds)
  await untilReady([node])
  return { target: `worker ${pid} of ${node.id} for ${seconds} s` }
}
