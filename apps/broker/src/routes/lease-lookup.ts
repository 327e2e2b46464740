// Looks up leases before a transaction. Lookups bypass the sidecar, so few run at once: hanging ones must not
// take the connections that messages need.
import { RouseError } from '@rouse/protocol'
import { WriteQueue } from '@rouse/sidecar'
import { type Holdings, holdingsOf } from '@rouse/storage'
import { runAdminQuery } from '../http/admin-query.ts'
import { toRouseError } from '../http/errors.ts'
import type { BrokerContext } from '../worker/context.ts'
import type { AskHoldings } from './required-leases.ts'

const questionsMax = 2
const pendingMax = 1_000

export function createLeaseLookup({ pool, config }: BrokerContext): AskHoldings {
  const limits = { timeoutMs: config.writeTimeoutMs }
  const queue = new WriteQueue<Parameters<AskHoldings>, Holdings>({
    slots: questionsMax,
    patienceMs: 0,
    pendingMax,
    countMax: 1,
    bytesMax: 0,
    ...limits,
    // Never marked as sent: a lookup changes nothing, so a late one is certain to have had no effect.
    async run([question]) {
      if (question === undefined) return
      const [leaseIds, names] = question.input
      try {
        question.resolve(await runAdminQuery(pool, () => holdingsOf(pool, leaseIds, names, limits)))
      } catch (error) {
        question.reject(nothingHappened(error))
      }
    },
  })
  return (leaseIds, names) => queue.submit([leaseIds, names])
}

function nothingHappened(error: unknown): RouseError {
  const known = toRouseError(error)
  if (known.code !== 'outcome_unknown') return known
  return new RouseError('database_unavailable', undefined, { cause: error })
}
