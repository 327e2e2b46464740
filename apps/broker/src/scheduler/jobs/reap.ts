import type { WakeHint } from '@rouse/protocol'
import { type Executor, reapStep } from '@rouse/storage'
import type { Job } from '../service.ts'

const leasesMax = 1_000

/** Ends expired leases and hints the lanes that can continue. */
export function createReaper(options: {
  readonly executor: Executor
  readonly onWoken: (woken: readonly WakeHint[]) => void
}): Job {
  return {
    async run() {
      const { woken, isMore } = await reapStep(options.executor, leasesMax)
      options.onWoken(woken)
      return isMore
    },
  }
}
