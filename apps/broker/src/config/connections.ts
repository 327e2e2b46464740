// Divides a node's database connections among its processes.
import type { Config } from './config.ts'

/**
 * The fallback poll, the node registry, the due poll and four jobs share a pool. LISTEN has a separate
 * connection.
 */
export const primaryPoolMax = 7
export const primaryConnections = primaryPoolMax + 1

/** The most connections a worker can use at once, and the fewest it can work with. */
export const workerConnectionsWanted = 15
export const workerConnectionsMin = 5

/** By default a node uses at most max_connections of the server, divided by this number. */
const serverShare = 4

export interface NodeConnections {
  readonly node: number
  readonly worker: number
}

type Wanted = Pick<Config, 'workers' | 'connectionsMax' | 'poolMax'>

/** `serverMax` is the server's max_connections, if it is known yet. */
export function nodeConnections(config: Wanted, serverMax?: number): NodeConnections {
  const { workers, connectionsMax, poolMax } = config
  if (poolMax !== undefined)
    return { node: workers * poolMax + primaryConnections, worker: poolMax }
  const node = connectionsMax ?? defaultConnections(workers, serverMax)
  return { node, worker: Math.floor((node - primaryConnections) / workers) }
}

/** Only the primary reads max_connections from the server, so it passes the result to its workers. */
export function workerEnvironment(
  { poolMax, migrateUrl }: Wanted & Pick<Config, 'migrateUrl'>,
  { node }: NodeConnections,
): Record<string, string> {
  return {
    ...(poolMax === undefined ? { ROUSE_CONNECTIONS_MAX: String(node) } : {}),
    // Workers never need the login that owns the schema. Empty means not set.
    ...(migrateUrl === undefined ? {} : { ROUSE_MIGRATE_URL: '' }),
  }
}

export function leastConnections(workers: number): number {
  return workers * workerConnectionsMin + primaryConnections
}

function defaultConnections(workers: number, serverMax = Number.POSITIVE_INFINITY): number {
  const wanted = workers * workerConnectionsWanted + primaryConnections
  return Math.max(leastConnections(workers), Math.min(wanted, Math.floor(serverMax / serverShare)))
}
