// Transactions move amounts from stage to stage, and the sum must stay the same. The sum over all messages of
// a stage, each counted once, must equal the sum of the previous stage minus the amounts that became dead
// letters there.
import type { History } from '../../history/history.ts'
import type { Message } from '../../history/history-views.ts'
import { deadLetters } from '../dead-letter-index.ts'
import { ghostsOf } from '../delivery/ghosts.ts'
import { Findings } from '../findings.ts'

interface StageSum {
  delivered: number
  dead: number
}

export function conservation(history: History): Findings {
  const findings = new Findings()
  const stages = new Map<number, StageSum>()
  for (const { stage } of history.queues.values()) {
    if (stage !== undefined) stages.set(stage, { delivered: 0, dead: 0 })
  }
  if (stages.size === 0) return findings
  const letters = deadLetters(history)
  for (const message of history.messages()) {
    const queue = history.queues.get(message.queue)
    const sum = queue?.stage === undefined ? undefined : stages.get(queue.stage)
    if (sum === undefined) continue
    const amount = amountOf(history, message)
    sum.delivered += amount
    if (queue?.groups.some((group) => letters.has(message, group))) sum.dead += amount
  }
  const sums = [...stages].sort(([a], [b]) => a - b)
  sums.slice(1).forEach(([stage, { delivered }], i) => {
    const [, before] = sums[i] as [number, StageSum]
    const expected = before.delivered - before.dead
    if (delivered === expected) return
    findings.add(`stage ${stage} got ${delivered} instead of ${expected}`, {
      stage,
      delivered,
      expected,
    })
  })
  return findings
}

/** The sum of the amounts of all messages with this value, without ghosts. */
function amountOf(history: History, message: Message): number {
  const ghosts = ghostsOf(history, message)
  const amounts = new Map(message.deliveries.map(({ id, amount }) => [id, amount]))
  return [...amounts].reduce((sum, [id, amount]) => (ghosts.has(id) ? sum : sum + amount), 0)
}
