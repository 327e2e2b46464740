import type pg from 'pg'
import { test } from 'tap'
import { createLeaseLookups } from '../../src/worker/lease-lookups.ts'

const name = {
  leaseId: '5b1d7c1e-8a34-4f0e-9d52-6a1f0c9d2e10',
  partitionId: '1',
  transactionId: 'a',
}

/** The lookups of a node whose database runs `query` for each of them. */
function lookupsWith(query: () => Promise<unknown>) {
  return createLeaseLookups({ query } as unknown as pg.Pool, { timeoutMs: 20 })
}

test('hanging lookups are refused in time, and take at most two connections', async (t) => {
  let asked = 0
  const lookups = lookupsWith(() => {
    asked += 1
    return new Promise(() => {})
  })
  const answers = await Promise.allSettled([
    ...Array.from({ length: 5 }, () => lookups.holdingsOf([], [])),
    ...Array.from({ length: 4 }, () => lookups.seqsOf([name])),
  ])
  for (const answer of answers) {
    t.match(answer, { status: 'rejected', reason: { code: 'database_unavailable' } })
  }
  t.equal(asked, 2)
})

test('a lookup whose connection is lost is database_unavailable, not outcome_unknown', async (t) => {
  const lost = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' })
  const lookups = lookupsWith(() => Promise.reject(lost))
  await t.rejects(lookups.holdingsOf([], []), { code: 'database_unavailable' })
  await t.rejects(lookups.seqsOf([name]), { code: 'database_unavailable' })
})
