// Applies the settings of session-settings.ts to a session, or finds that every transaction must apply them.
import type pg from 'pg'
import { type SessionSetting, sessionSettings } from './session-settings.ts'

export interface SessionStart {
  readonly isPooled: boolean
  /** Whether each statement must be wrapped in a transaction that starts with the settings. */
  readonly needsOwnTransactions: boolean
  /** Begins a transaction and makes the settings local to it, in one round trip. */
  readonly begin: string
}

/** Configures a direct connection once, and reports how to use a connection through a pooler. `backendPid`:
 * the process id reported at session start. A pooler invents one, because the backend behind a client
 * changes. `given`: values that the caller requested, by setting. */
export async function beginSession(
  client: pg.ClientBase,
  backendPid: number,
  given: Readonly<Record<string, string>>,
): Promise<SessionStart> {
  const wanted = sessionSettings.map((one) => ({ ...one, value: given[one.name] ?? one.value }))
  const { rows } = await client.query<{ name: string; found: string; set: string | null }>(
    settingsQuery(wanted, backendPid),
  )
  const isPooled = rows.every((row) => row.set === null)
  const here = wanted.filter(({ name }) => rows.some((row) => row.name === name))
  const isHarmed = here.some(({ name, isHarmful, sparesStatements }) => {
    const found = rows.find((row) => row.name === name)?.found ?? ''
    return sparesStatements !== true && isHarmful(found)
  })
  return {
    isPooled,
    needsOwnTransactions: isPooled && (isHarmed || (await shadowsBuiltIns(client))),
    begin: [
      'begin isolation level read committed',
      ...here
        .filter(
          ({ name }) => !name.startsWith('default_transaction') && name !== 'idle_session_timeout',
        )
        .map(
          ({ name, value }) =>
            `set local ${name} = ${name === 'search_path' ? value : `'${value}'`}`,
        ),
    ].join('; '),
  }
}

/** Uses qualified names only, because the search path is the server's until this query has run. Omits
 * settings that this server does not have. */
function settingsQuery(wanted: readonly SessionSetting[], backendPid: number): string {
  const values = wanted.map(({ name, value }) => `('${name}', '${value}')`).join(', ')
  return `select w.name, pg_catalog.current_setting(w.name, true) as found,
      case when pg_catalog.pg_backend_pid() operator(pg_catalog.=) ${backendPid}
        then pg_catalog.set_config(w.name, w.value, false) end as set
    from (values ${values}) w (name, value)
    where pg_catalog.current_setting(w.name, true) is not null`
}

/** Whether a schema in the search path has a function or an operator that would run in place of a built-in
 * one. An exact match of argument types beats a polymorphic built-in. A function with the signature of a
 * built-in one runs only if the path names pg_catalog after the function's schema. Functions for a schema's
 * own types (citext, vector) never match our calls. */
export async function shadowsBuiltIns(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(`
    with callable as (
      select p.proname as name, p.pronamespace as schema, p.proargtypes::pg_catalog.oid[] as types, 'f' as kind from pg_catalog.pg_proc p
      union all
      select o.oprname, o.oprnamespace, array[o.oprleft, o.oprright], 'o' from pg_catalog.pg_operator o
    ), built_in as (
      select c.name, c.types, c.kind from callable c
      where c.schema operator(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace
    )
    select exists (
      select from callable c
      join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.schema
      where n.nspname operator(pg_catalog.=) any (pg_catalog.current_schemas(false))
        and n.nspname operator(pg_catalog.<>) 'pg_catalog'
        and exists (select from built_in b
          where b.name operator(pg_catalog.=) c.name and b.kind operator(pg_catalog.=) c.kind)
        and not exists (select from pg_catalog.unnest(c.types) a (oid)
          join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) a.oid
          where t.typnamespace operator(pg_catalog.<>) 'pg_catalog'::pg_catalog.regnamespace)
        and not (
          (select s.name from pg_catalog.unnest(pg_catalog.current_schemas(true)) with ordinality s (name, place)
            where s.name operator(pg_catalog.!~~) 'pg_temp%' order by s.place limit 1) operator(pg_catalog.=) 'pg_catalog'
          and exists (select from built_in b
            where b.name operator(pg_catalog.=) c.name and b.kind operator(pg_catalog.=) c.kind
              and b.types operator(pg_catalog.=) c.types))
    ) as found`)
  return rows[0]?.found === true
}
