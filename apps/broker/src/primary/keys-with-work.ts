import { isCompletionGroup, type WaitGroup } from '@rouse/protocol'
import type { GroupKey } from '@rouse/shared-state'
import { groupsWithWork } from '@rouse/storage'
import type pg from 'pg'

/**
 * The wait groups of a fallback poll that may have something to pop, by one query for all of them. Only its worker
 * knows which messages a completion group waits for, so such a group always has work: the worker's lookup is its
 * poll.
 */
export async function keysWithWork(
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
