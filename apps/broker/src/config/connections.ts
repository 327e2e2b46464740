// How the connections of a node are divided among its processes.
import type { Config } from './config.ts'

/** Of the primary: the fallback check, the list of nodes, the look for what is due and four chores, in one pool; and LISTEN. */
export const primaryPoolMax = 7
export const primaryConnections = primaryPoolMax + 1

/** What a worker's kinds of calls can use at once, and the least with which they get along. */
export const workerConnectionsWanted = 15
export const workerConnectionsMin = 5

/** Of a server that says nothing else, a node takes no more than this part. */
const serverShare = 4

export interface NodeConnections {
  readonly node: number
  readonly worker: number
}

type Wanted = Pick<Config, 'workers' | 'connectionsMax' | 'poolMax'>

/** `serverMax` is the server's max_connections, where it is known yet. */
export function nodeConnections(config: Wanted, serverMax?: number): NodeConnections {
  const { workers, connectionsMax, poolMax } = config
  if (poolMax !== undefined)
    return { node: workers * poolMax + primaryConnections, worker: poolMax }
  const node = connectionsMax ?? defaultConnections(workers, serverMax)
  return { node, worker: Math.floor((node - primaryConnections) / workers) }
}

/** Only the primary has asked the server how many it has; its workers are told. */
export function workerEnvironment(
  { poolMax }: Wanted,
  { node }: NodeConnections,
): Record<string, string> {
  return poolMax === undefined ? { ROUSE_CONNECTIONS_MAX: String(node) } : {}
}

export function leastConnections(workers: number): number {
  return workers * workerConnectionsMin + primaryConnections
}

function defaultConnections(workers: number, serverMax = Number.POSITIVE_INFINITY): number {
  const wanted = workers * workerConnectionsWanted + primaryConnections
  return Math.max(leastConnections(workers), Math.min(wanted, Math.floor(serverMax / serverShare)))
}
