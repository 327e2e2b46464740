import { type Executor, type Retained, type RetainOptions, retain } from '@rouse/storage'

const stepsMax = 1_000

/** Runs steps of retention until the round is complete: on a busy machine a step may reach its time limit. */
export async function retainRound(
  executor: Executor,
  options: Partial<RetainOptions> = {},
): Promise<Retained> {
  let sum = await retain(executor, options)
  for (let steps = 1; sum.next !== '0' && steps < stepsMax; steps += 1) {
    const more = await retain(executor, { ...options, after: sum.next })
    sum = {
      messages: sum.messages + more.messages,
      dedup: sum.dedup + more.dedup,
      deadLetters: sum.deadLetters + more.deadLetters,
      attempts: sum.attempts + more.attempts,
      traces: sum.traces + more.traces,
      partitions: sum.partitions + more.partitions,
      next: more.next,
    }
  }
  return sum
}
