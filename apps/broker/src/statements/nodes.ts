import type pg from 'pg'
import { callStatement } from './call.ts'

/** A node as it describes itself. */
export interface NodeRecord {
  readonly id: string
  readonly incarnation: number
  /** Null until a worker listens. */
  readonly httpUrl: string | null
  /** `host:port` of its gossip. */
  readonly gossipAddress: string
  readonly version: string
}

export interface SeenNode extends NodeRecord {
  readonly uptimeMs: number
  /** Since it last wrote its row, by the database's clock. */
  readonly silentMs: number
}

export interface ClusterIdentity {
  readonly clusterId: string
  /** Higher than that of every process that ever ran in this cluster. */
  readonly incarnation: number
}

export async function joinCluster(pool: pg.Pool): Promise<ClusterIdentity> {
  const [row] = await callStatement(
    pool,
    `select id::text, nextval('rouse.incarnations')::float8 from rouse.cluster`,
  )
  if (row === undefined) throw new Error('rouse.cluster holds no row')
  return { clusterId: row[0] as string, incarnation: row[1] as number }
}

export interface NodeExchange {
  /** False: a later process has our id, and its row stays. */
  readonly written: boolean
  /** All others that wrote their row not long ago. */
  readonly others: readonly SeenNode[]
}

/** Writes our row and reads those of the others, in one round trip. */
export async function exchangeNodes(
  pool: pg.Pool,
  own: NodeRecord,
  freshMs: number,
): Promise<NodeExchange> {
  const rows = await callStatement(
    pool,
    `with written as (
       insert into rouse.nodes as n
         (id, incarnation, http_url, gossip_address, version, started_at, last_seen_at)
       values ($1, $2, $3, $4, $5, rouse.now(), rouse.now())
       on conflict (id) do update set
         incarnation = excluded.incarnation, http_url = excluded.http_url,
         gossip_address = excluded.gossip_address, version = excluded.version,
         started_at = case when n.incarnation = excluded.incarnation then n.started_at
                           else excluded.started_at end,
         last_seen_at = excluded.last_seen_at
       where n.incarnation <= excluded.incarnation
       returning true
     )
     select exists (select from written), n.id, n.incarnation::float8, n.http_url, n.gossip_address,
       n.version, (extract(epoch from rouse.now() - n.started_at) * 1000)::float8,
       (extract(epoch from rouse.now() - n.last_seen_at) * 1000)::float8
     from (select) as always
     left join rouse.nodes n
       on n.id <> $1 and n.last_seen_at > rouse.now() - $6 * interval '1 millisecond'
     order by n.id`,
    [own.id, own.incarnation, own.httpUrl, own.gossipAddress, own.version, freshMs],
  )
  return {
    written: rows[0]?.[0] === true,
    others: rows.filter((row) => row[1] !== null).map(readNode),
  }
}

function readNode(row: readonly unknown[]): SeenNode {
  return {
    id: row[1] as string,
    incarnation: row[2] as number,
    httpUrl: row[3] as string | null,
    gossipAddress: row[4] as string,
    version: row[5] as string,
    uptimeMs: row[6] as number,
    silentMs: row[7] as number,
  }
}

/** Only our own row: a process that took our id over keeps its. Rows of nodes long dead go as well. */
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
