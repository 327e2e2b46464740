// The pages of shared buffers that a call touches, including all statements inside its functions. Unlike
// time, the number is the same on every machine.
import type { Executor, Statement } from '@rouse/storage'
import type pg from 'pg'

interface Explained {
  readonly Plan: { readonly 'Shared Hit Blocks': number; readonly 'Shared Read Blocks': number }
}

/**
 * Returns the minimum of a few rounds: the first ones also read the catalogue and plan. Rolls the call back.
 */
export async function buffersOf(
  client: pg.ClientBase,
  call: (executor: Executor) => Promise<unknown>,
  prepare: (executor: Executor) => Promise<void> = async () => {},
): Promise<number> {
  const rounds: number[] = []
  while (rounds.length < 4) {
    await client.query('begin')
    await prepare(client)
    const explainer = new Explainer(client)
    // EXPLAIN returns the plan instead of rows, so the caller cannot read the result.
    await call(explainer).catch((error: unknown) => {
      if (!(error instanceof PlanInPlaceOfRows)) throw error
    })
    rounds.push(explainer.buffers)
    await client.query('rollback')
  }
  return Math.min(...rounds)
}

class PlanInPlaceOfRows extends Error {}

class Explainer implements Executor {
  readonly #client: pg.ClientBase
  buffers = 0

  constructor(client: pg.ClientBase) {
    this.#client = client
  }

  async query({ text, values }: Statement): Promise<never> {
    const { rows } = await this.#client.query<{ 'QUERY PLAN': [Explained] }>(
      `explain (analyze, buffers, format json) ${text}`,
      [...values],
    )
    const plan = (rows[0] as { 'QUERY PLAN': [Explained] })['QUERY PLAN'][0].Plan
    this.buffers = plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
    throw new PlanInPlaceOfRows()
  }
}
