import type { Executor } from '../executor.ts'

/** Resolves when the server can write: a standby answers, but with an error. */
export async function ping(executor: Executor): Promise<void> {
  const { rows } = await executor.query({
    text: 'select pg_is_in_recovery()',
    values: [],
    rowMode: 'array',
  })
  if (rows[0]?.[0] === true) throw new Error('the server is a standby')
}
