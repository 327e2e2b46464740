import { type Executor, reapExpired, type Woken } from '@rouse/sidecar'
import type { Chore } from './service.ts'

const leasesMax = 1_000

/** Takes back leases that ran out, and tells who may go on with what they held. */
export function createReaper(options: {
  readonly executor: Executor
  readonly onWoken: (woken: readonly Woken[]) => void
}): Chore {
  return {
    async run() {
      const woken = await reapExpired(options.executor, leasesMax)
      options.onWoken(woken)
      return woken.length >= leasesMax
    },
  }
}
