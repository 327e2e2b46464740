import type pg from 'pg'

/** The triggers of `scheduled` and `freed` notify here: the earliest due time in ms since 1970, 0 for now. */
export const scheduledChannel = 'rouse_scheduled'

/** `echo`: a channel of this connection alone. */
export async function listen(client: pg.Client, echo: string): Promise<void> {
  await client.query(`listen ${scheduledChannel}`)
  await client.query(`listen ${echo}`)
}

/** Notifies ourselves. PostgreSQL delivers that before it answers the query. */
export async function beat(client: pg.Client, echo: string): Promise<void> {
  await client.query('select pg_notify($1, $2)', [echo, ''])
}
