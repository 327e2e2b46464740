// Observes from a second connection which lock a step waits for, and which session holds it. PostgreSQL does
// not report this when the wait times out.
import type pg from 'pg'

export interface LockHolder {
  readonly pid: number
  readonly application: string
  /** As in pg_stat_activity: active, idle in transaction. */
  readonly state: string
  /** The age of the session's transaction. */
  readonly ageMs: number
}

/** The lock that a step waits for. */
export interface MigrationWait {
  /** The file, or `the migrations` if another node is applying them. */
  readonly what: string
  /** The table, if it could be determined. */
  readonly waitsFor: string | undefined
  /** The sessions that hold the lock, the oldest transaction first. */
  readonly holders: readonly LockHolder[]
}

type LockFound = Omit<MigrationWait, 'what'>

export interface LockWatch {
  /** Observes what this client waits for, until stopped. */
  start(client: pg.ClientBase): Promise<void>
  /** The last observation. */
  found(): LockFound
  stop(): void
}

/** Short enough for two reads within the lock timeout of a step. */
const readEveryMs = 70

export function watchLock(pool: pg.Pool): LockWatch {
  let seen: LockFound = { waitsFor: undefined, holders: [] }
  let isReading = false
  let timer: NodeJS.Timeout | undefined

  async function read(pid: number): Promise<void> {
    if (isReading) return
    isReading = true
    try {
      const found = await readLock(pool, pid)
      if (found.holders.length > 0) seen = found
    } catch {
      // The step itself reports what is wrong with the database.
    } finally {
      isReading = false
    }
  }

  return {
    async start(client) {
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
      const pid = rows[0]?.pid ?? 0
      timer = setInterval(() => void read(pid), readEveryMs)
    },
    found: () => seen,
    stop: () => clearInterval(timer),
  }
}

async function readLock(pool: pg.Pool, pid: number): Promise<LockFound> {
  const { rows } = await pool.query<LockHolder & { waitsFor: string | null }>(
    `select w.relation::regclass::text as "waitsFor", a.pid, a.application_name as application,
       coalesce(a.state, '') as state,
       coalesce(extract(epoch from clock_timestamp() - a.xact_start) * 1000, 0)::float8 as "ageMs"
     from unnest(pg_blocking_pids($1)) b (pid)
     join pg_stat_activity a on a.pid = b.pid
     left join pg_locks w on w.pid = $1 and not w.granted
     order by a.xact_start limit 5`,
    [pid],
  )
  const holders = rows.map(({ pid: holder, application, state, ageMs }) => {
    return { pid: holder, application, state, ageMs }
  })
  return { waitsFor: rows[0]?.waitsFor ?? undefined, holders }
}

/** For example: `functions/push.sql waits for rouse.messages: process 4711 (psql, idle in transaction), whose
 * transaction is 65 s old`. */
export function describeMigrationWait({ what, waitsFor, holders }: MigrationWait): string {
  const [first] = holders
  const lock = waitsFor ?? (what === 'the migrations' ? 'another node that applies them' : 'a lock')
  if (first === undefined) return `${what} waits for ${lock}`
  const { pid, application, state, ageMs } = first
  const who = [application, state].filter((word) => word !== '').join(', ')
  const others = holders.length > 1 ? ` and ${holders.length - 1} more` : ''
  return `${what} waits for ${lock}: process ${pid} (${who})${others}, whose transaction is ${Math.round(ageMs / 1000)} s old`
}
