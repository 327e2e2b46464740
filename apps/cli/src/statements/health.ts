import type { createPool } from '@rouse/database'

export type Pool = ReturnType<typeof createPool>

export async function readSetting(pool: Pool, name: string): Promise<string> {
  const { rows } = await pool.query<{ value: string }>('select current_setting($1) as value', [
    name,
  ])
  return rows[0]?.value ?? ''
}

export interface RoleSetting {
  readonly name: string
  readonly value: string
  /** As pg_settings has it: database, user, database user, configuration file, default. */
  readonly source: string
  /** Quoted, both. */
  readonly role: string
  readonly database: string
}

export async function readRoleSettings(
  pool: Pool,
  names: readonly string[],
): Promise<RoleSetting[]> {
  const { rows } = await pool.query<RoleSetting>(
    `select s.name, s.setting as value, s.source, quote_ident(current_user) as role,
       quote_ident(current_database()) as database
     from pg_catalog.pg_settings s where s.name = any ($1) order by s.name`,
    [names],
  )
  return rows
}

/** Empty where the server does not have the setting. */
export async function readSettingIfAny(pool: Pool, name: string): Promise<string> {
  const { rows } = await pool.query<{ value: string | null }>(
    'select current_setting($1, true) as value',
    [name],
  )
  return rows[0]?.value ?? ''
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

/** Whether what is notified on a connection is heard on it. Asked without a pooler: one may pass on what we notify ourselves. */
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
