import type { Executor } from '../executor.ts'

/** Resolves if the server accepts writes; rejects on a standby. */
export async function ping(executor: Executor): Promise<void> {
  const { rows } = await executor.query({
    text: 'select pg_is_in_recovery()',
    values: [],
    rowMode: 'array',
  })
  if (rows[0]?.[0] === true) throw new Error('the server is a standby')
}
