import type pg from 'pg'

/** For poolers and servers before 14, which do not report it by themselves. */
export async function isReadOnlySession(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ transaction_read_only: string }>(
    'show transaction_read_only',
  )
  return rows[0]?.transaction_read_only === 'on'
}
