import type pg from 'pg'
import { callStatement } from '../call.ts'
import type { Original } from './copy.ts'

/** A node's description of itself. */
export interface NodeRecord {
  readonly id: string
  readonly incarnation: number
  /** Null until a worker listens. */
  readonly httpUrl: string | null
  /** `host:port` of its gossip socket. */
  readonly gossipAddress: string
  readonly version: string
  /** ROUSE_DEFAULT_*, by option; absent if a node of an earlier release wrote the row. */
  readonly queueDefaults?: Readonly<Record<string, unknown>> | undefined
}

export interface SeenNode extends NodeRecord {
  readonly uptimeMs: number
  /** Time since it last wrote its row, by the database clock. */
  readonly silentMs: number
}

export interface ClusterIdentity {
  readonly clusterId: string
  /** Higher than that of every earlier process of this cluster. */
  readonly incarnation: number
}

export async function joinCluster(pool: pg.Pool): Promise<ClusterIdentity> {
  const [row] = await callStatement(
    pool,
    `select rouse.join_cluster()::text, nextval('rouse.incarnations')::float8`,
  )
  const clusterId = row?.[0] as string | null | undefined
  if (typeof clusterId !== 'string') throw new Error('rouse.cluster holds no row')
  return { clusterId, incarnation: row?.[1] as number }
}

export interface NodeExchange {
  /** The time of the exchange by the database clock, in ms since 1970. */
  readonly atMs: number
  /** False: a process with our id and a higher incarnation owns the row. */
  readonly written: boolean
  /** The process that owns the row; undefined if it wrote the row at the same moment. */
  readonly namesake: SeenNode | undefined
  /** All other nodes that wrote their row recently. */
  readonly others: readonly SeenNode[]
  /** If this database is a copy that was not adopted. */
  readonly copyOf: Original | undefined
}

/**
 * Writes our row and reads those of the others, in one round trip. A fresh row of a later process with our id
 * is not overwritten. A stale row is overwritten: after a restore from a backup, or a failover to a replica
 * whose sequence is behind, the row may belong to a process that is long gone. The sequence is then
 * corrected, so that the next process gets a higher number.
 */
export async function exchangeNodes(
  pool: pg.Pool,
  own: NodeRecord,
  freshMs: number,
): Promise<NodeExchange> {
  const rows = await callStatement(
    pool,
    `with clock as (
       select rouse.now() as at
     ), caught_up as (
       select setval('rouse.incarnations', $2) from rouse.incarnations where last_value < $2
     ), written as (
       insert into rouse.nodes as n
         (id, incarnation, http_url, gossip_address, version, queue_defaults, started_at, last_seen_at)
       select $1, $2, $3, $4, $5, $7::jsonb, at, at from clock
       on conflict (id) do update set
         incarnation = excluded.incarnation, http_url = excluded.http_url,
         gossip_address = excluded.gossip_address, version = excluded.version,
         queue_defaults = excluded.queue_defaults,
         started_at = case when n.incarnation = excluded.incarnation then n.started_at
                           else excluded.started_at end,
         last_seen_at = excluded.last_seen_at
       where n.incarnation <= excluded.incarnation
         or n.last_seen_at <= excluded.last_seen_at - $6 * interval '1 millisecond'
       returning true
     )
     select (extract(epoch from at) * 1000)::float8, exists (select from written),
       n.id, n.incarnation::float8, n.http_url, n.gossip_address, n.version,
       (extract(epoch from at - n.started_at) * 1000)::float8,
       (extract(epoch from at - n.last_seen_at) * 1000)::float8, n.queue_defaults, rouse.copied_from()
     from clock
     left join caught_up on true
     left join rouse.nodes n on n.last_seen_at > at - $6 * interval '1 millisecond'
     order by n.id`,
    [
      own.id,
      own.incarnation,
      own.httpUrl,
      own.gossipAddress,
      own.version,
      freshMs,
      own.queueDefaults === undefined ? null : JSON.stringify(own.queueDefaults),
    ],
  )
  const written = rows[0]?.[1] === true
  const nodes = rows.filter((row) => row[2] !== null).map(readNode)
  return {
    atMs: rows[0]?.[0] as number,
    written,
    namesake: written ? undefined : nodes.find(({ id }) => id === own.id),
    others: nodes.filter(({ id }) => id !== own.id),
    copyOf: (rows[0]?.[10] as Original | null) ?? undefined,
  }
}

function readNode(row: readonly unknown[]): SeenNode {
  return {
    id: row[2] as string,
    incarnation: row[3] as number,
    httpUrl: row[4] as string | null,
    gossipAddress: row[5] as string,
    version: row[6] as string,
    uptimeMs: row[7] as number,
    silentMs: row[8] as number,
    queueDefaults: (row[9] as Record<string, unknown> | null) ?? undefined,
  }
}

/**
 * Deletes only our own row: a process that took over our id keeps its row. Also deletes rows of nodes that
 * are long dead.
 */
export async function removeNode(
  pool: pg.Pool,
  { id, incarnation }: Pick<NodeRecord, 'id' | 'incarnation'>,
  deadMs: number,
): Promise<void> {
  await callStatement(
    pool,
    `delete from rouse.nodes where (id = $1 and incarnation = $2)
       or last_seen_at < rouse.now() - $3 * interval '1 millisecond'`,
    [id, incarnation, deadMs],
  )
}
