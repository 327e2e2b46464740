import { type Executor, reapStep, type Woken } from '@rouse/sidecar'
import type { Chore } from './service.ts'

const leasesMax = 1_000

/** Takes back leases that ran out, and announces the lanes that may go on. */
export function createReaper(options: {
  readonly executor: Executor
  readonly onWoken: (woken: readonly Woken[]) => void
}): Chore {
  return {
    async run() {
      const { woken, isMore } = await reapStep(options.executor, leasesMax)
      options.onWoken(woken)
      return isMore
    },
  }
}
