import { type Executor, reapExpired, type Woken } from '@rouse/sidecar'
import type pg from 'pg'
import type { Chore } from './service.ts'

const leasesMax = 1_000

/** Takes back leases that ran out, and tells who may go on with what they held. */
export function createReaper(options: {
  readonly pool: pg.Pool
  readonly onWoken: (woken: readonly Woken[]) => void
}): Chore {
  return {
    async run() {
      const woken = await reapExpired(options.pool as unknown as Executor, leasesMax)
      options.onWoken(woken)
      return woken.length >= leasesMax
    },
  }
}
