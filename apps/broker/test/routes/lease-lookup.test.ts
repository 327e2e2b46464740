import { test } from 'tap'
import { createLeaseLookup } from '../../src/routes/required-leases.ts'
import type { BrokerContext } from '../../src/worker/context.ts'

/** A node whose database runs `query` for each lookup. */
function nodeWith(query: () => Promise<unknown>): BrokerContext {
  return { pool: { query }, config: { writeTimeoutMs: 20 } } as unknown as BrokerContext
}

test('hanging lookups are refused in time, and take at most two connections', async (t) => {
  let asked = 0
  const ask = createLeaseLookup(
    nodeWith(() => {
      asked += 1
      return new Promise(() => {})
    }),
  )
  const answers = await Promise.allSettled(Array.from({ length: 9 }, () => ask([], [])))
  for (const answer of answers) {
    t.match(answer, { status: 'rejected', reason: { code: 'database_unavailable' } })
  }
  t.equal(asked, 2)
})

test('a lookup whose connection is lost is database_unavailable, not outcome_unknown', async (t) => {
  const lost = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' })
  const ask = createLeaseLookup(nodeWith(() => Promise.reject(lost)))
  await t.rejects(ask([], []), { code: 'database_unavailable' })
})
