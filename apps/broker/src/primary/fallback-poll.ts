// Runs the fallback polls that the SharedStateManager asks for: one query for all wait groups that are due.
import { isCompletionGroup, type WaitGroup } from '@rouse/protocol'
import type { GroupKey, SharedStateManager } from '@rouse/shared-state'
import { groupsWithWork } from '@rouse/storage'
import type pg from 'pg'
import type { Logger } from '../log.ts'

export interface FallbackPollOptions {
  readonly pool: pg.Pool
  readonly log: Pick<Logger, 'warn'>
  readonly manager: Pick<SharedStateManager, 'fallbackResult' | 'fallbackFailed'>
}

export class FallbackPoll {
  readonly #options: FallbackPollOptions
  /** Whether the last poll failed. Only the first of several failures is logged. */
  #failing = false
  #stopped = false

  constructor(options: FallbackPollOptions) {
    this.#options = options
  }

  /** Never rejects. */
  async run(due: ReadonlyMap<GroupKey, WaitGroup>): Promise<void> {
    const { pool, log, manager } = this.#options
    try {
      const withWork = await keysWithWork(pool, due)
      this.#failing = false
      manager.fallbackResult(withWork)
    } catch (error) {
      if (this.#stopped) return
      if (!this.#failing) log.warn({ reason: (error as Error).message }, 'fallback poll failed')
      this.#failing = true
      manager.fallbackFailed()
    }
  }

  stop(): void {
    this.#stopped = true
  }
}

/**
 * The wait groups of a fallback poll that may have something to pop, by one query for all of them. Only its worker
 * knows which messages a completion group waits for, so such a group always has work: the worker's lookup is its
 * poll.
 */
async function keysWithWork(
  pool: pg.Pool,
  due: ReadonlyMap<GroupKey, WaitGroup>,
): Promise<GroupKey[]> {
  const ends = [...due].filter(([, { group }]) => isCompletionGroup(group)).map(([key]) => key)
  const pops = [...due].filter(([, { group }]) => !isCompletionGroup(group))
  if (pops.length === 0) return ends
  const positions = await groupsWithWork(
    pool,
    pops.map(([, group]) => group),
  )
  return [...ends, ...positions.flatMap((position) => pops[position]?.[0] ?? [])]
}
