import type { createPool, shadowsBuiltIns } from '@rouse/database'

export type Pool = ReturnType<typeof createPool>

export async function readSetting(pool: Pool, name: string): Promise<string> {
  const { rows } = await pool.query<{ value: string }>('select current_setting($1) as value', [
    name,
  ])
  return rows[0]?.value ?? ''
}

type Client = Parameters<typeof shadowsBuiltIns>[0]

/**
 * Runs `ask` without the timeouts of the role and the database. It does so inside a transaction, so that no
 * setting stays on a connection of a pooler.
 */
export async function withoutTimeouts<Result>(
  pool: Pool,
  ask: (client: Client) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  try {
    // One round trip: a timeout of a few milliseconds would end a second one on a busy machine.
    await client.query(`begin; set local statement_timeout = 0;
      select set_config('transaction_timeout', '0', true)
      where current_setting('transaction_timeout', true) is not null`)
    return await ask(client)
  } finally {
    client.release(true)
  }
}

export interface RoleSetting {
  readonly name: string
  readonly value: string
  /** The source as in pg_settings: database, user, database user, global, configuration file, default. */
  readonly source: string
  /** Quoted as an identifier, and so is `database`. */
  readonly role: string
  readonly database: string
}

/**
 * The settings that a new session gets. If this session has changed a setting, pg_settings no longer shows
 * its original source. The source is then read from the catalogue, or is `session` if the catalogue does not
 * have it.
 */
export async function readRoleSettings(
  client: Client,
  names: readonly string[],
): Promise<RoleSetting[]> {
  const { rows } = await client.query<RoleSetting>(
    `select s.name, s.reset_val as value, quote_ident(session_user) as role, quote_ident(current_database()) as database,
       case when s.source <> 'session' then s.source else coalesce(
         (select case when d.setrole = 0 and d.setdatabase = 0 then 'global' when d.setrole = 0 then 'database'
            when d.setdatabase = 0 then 'user' else 'database user' end
          from pg_catalog.pg_db_role_setting d
          where d.setrole in (0, (select r.oid from pg_catalog.pg_roles r where r.rolname = session_user))
            and d.setdatabase in (0, (select b.oid from pg_catalog.pg_database b where b.datname = current_database()))
            and exists (select from unnest(d.setconfig) c where lower(split_part(c, '=', 1)) = lower(s.name))
          order by d.setrole = 0, d.setdatabase = 0 limit 1), s.source) end as source
     from pg_catalog.pg_settings s where s.name = any ($1) order by s.name`,
    [names],
  )
  return rows
}

/** Empty if the server does not have the setting. */
export async function readSettingIfAny(pool: Pool, name: string): Promise<string> {
  const { rows } = await pool.query<{ value: string | null }>(
    'select current_setting($1, true) as value',
    [name],
  )
  return rows[0]?.value ?? ''
}

/** The defaults for new queues. Fails if the schema does not exist yet or is not accessible. */
export async function readServerDefaults(
  pool: Pool,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const { rows } = await pool.query<{ options: Record<string, unknown> }>(
    'select options from rouse.server_defaults',
  )
  return rows[0]?.options
}

export async function readClockMs(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ now: Date }>('select clock_timestamp() as now')
  return rows[0]?.now.getTime() ?? Number.NaN
}

export async function isBehindPooler(pool: Pool): Promise<boolean> {
  const { isPooled } = await import('@rouse/database')
  const client = await pool.connect()
  try {
    return await isPooled(client)
  } finally {
    client.release()
  }
}

/**
 * Whether a connection receives its own notifications. Called only without a pooler, because behind a pooler
 * a connection may receive its own notifications and still miss those of others.
 */
export async function isListenHeard(pool: Pool, withinMs: number): Promise<boolean> {
  const client = await pool.connect()
  try {
    const heard = new Promise<boolean>((resolve) => {
      client.once('notification', () => resolve(true))
      setTimeout(() => resolve(false), withinMs).unref()
    })
    await client.query('listen rouse_doctor')
    await client.query('notify rouse_doctor')
    await client.query('select 1')
    return await heard
  } finally {
    client.release(true)
  }
}
