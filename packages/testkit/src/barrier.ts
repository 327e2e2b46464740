import pg from 'pg'
import { eventually } from './eventually.ts'
import { barrierLockSpace } from './instrumentation.ts'

/** Stops every database call at the `-- barrier: name` line until the barrier is released. */
export interface Barrier {
  /** Resolves once `count` calls wait at the barrier. */
  reached(count?: number): Promise<{ pids: number[] }>
  /** Lets the waiting calls continue; safe to call twice. */
  release(): Promise<void>
}

export async function armBarrier(url: string, name: string): Promise<Barrier> {
  const client = new pg.Client({ connectionString: url, application_name: `barrier ${name}` })
  client.on('error', () => {})
  await client.connect()
  await client.query('select pg_advisory_lock($1, hashtext($2))', [barrierLockSpace, name])
  let released: Promise<void> | undefined
  return {
    reached: (count = 1) =>
      eventually(async () => {
        const pids = await waitingPids(client, name)
        return pids.length >= count ? { pids } : undefined
      }),
    release() {
      // The lock belongs to the session and ends with it.
      released ??= client.end()
      return released
    },
  }
}

async function waitingPids(client: pg.Client, name: string): Promise<number[]> {
  const { rows } = await client.query<{ pid: number }>(
    `select pid from pg_locks
     where locktype = 'advisory' and not granted
       and classid = $1 and objid = hashtext($2)::oid
       and database = (select oid from pg_database where datname = current_database())
     order by pid`,
    [barrierLockSpace, name],
  )
  return rows.map(({ pid }) => pid)
}
