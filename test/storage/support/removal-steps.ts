// Steps of purges and deletions, run by the test.
import type { Storage } from './storage.ts'

/** Makes every purge run in steps, as if the queue were large. */
export async function purgeInSteps({ rows }: Storage): Promise<void> {
  await rows(
    `create or replace function rouse.purges_in_steps(p_queue_id integer, p_queue text) returns boolean
     language sql as 'select true'`,
  )
}

/** Runs one step now, even if it is not due. */
export async function step({ rows }: Storage): Promise<number> {
  await rows(`update rouse.removals set next_at = '-infinity'`)
  await rows(`update rouse.chores set next_at = '-infinity' where name = 'removal'`)
  const [begun] = await rows<{ at: string }>('select extract(epoch from clock_timestamp()) as at')
  await rows(`select * from rouse.removal_step('test')`)
  const [ended] = await rows<{ at: string }>('select extract(epoch from clock_timestamp()) as at')
  return Number(ended?.at) - Number(begun?.at)
}

/** Runs all steps; returns their number. */
export async function removeAll(storage: Storage): Promise<number> {
  for (let steps = 0; ; steps += 1) {
    if ((await storage.rows('select from rouse.removals')).length === 0) return steps
    if (steps > 5_000) throw new Error('the removal does not end')
    await step(storage)
  }
}
