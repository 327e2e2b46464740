import type pg from 'pg'

/**
 * The channel on which the triggers of `scheduled` and `freed` notify. The payload is the earliest due time
 * in ms since 1970, or 0 for now.
 */
export const scheduledChannel = 'rouse_scheduled'

/** `echo`: a channel that only this connection uses. */
export async function listen(client: pg.Client, echo: string): Promise<void> {
  await client.query(`listen ${scheduledChannel}`)
  await client.query(`listen ${echo}`)
}

/** Notifies this connection. PostgreSQL delivers the notification before the query result. */
export async function beat(client: pg.Client, echo: string): Promise<void> {
  await client.query('select pg_notify($1, $2)', [echo, ''])
}
