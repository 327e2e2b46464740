// Promise 6: a push reaches an idle waiter. A message is late if the time from its push to its delivery
// exceeds the queue's limit, although a pop was open for longer than the limit during that time. Faults and
// their aftermath are excluded: recovery times cover them.
import type { History } from '../../history/history.ts'
import type { Pop } from '../../history/history-views.ts'
import { Findings } from '../findings.ts'

const aftermathMs = 5_000

export function lateWakes(history: History): Findings {
  const findings = new Findings()
  const waiters = new Map<string, Pop[]>()
  for (const message of history.messages()) {
    const queue = history.queues.get(message.queue)
    if (queue?.wakeMsMax === undefined) continue
    const [push] = message.pushes
    if (push?.outcome !== 'ok' || message.pushes.length > 1 || push.delayMs > 0) continue
    for (const group of queue.groups) {
      const first = message.deliveries.find((delivery) => delivery.group === group)
      if (first === undefined || first.end - push.end <= queue.wakeMsMax) continue
      if (history.faulty(push.start - aftermathMs, first.end)) continue
      const name = JSON.stringify([queue.queue, group])
      const pops = waiters.get(name) ?? [...history.pops(queue.queue, group)]
      waiters.set(name, pops)
      const idle = pops.find((pop) => wasIdle(pop, push.end, first.end, queue.wakeMsMax ?? 0))
      if (idle === undefined) continue
      const lateMs = Math.round(first.end - push.end)
      findings.add(
        `${message.value} was delivered ${lateMs} ms after its push although a pop was waiting`,
        message,
        idle,
      )
    }
  }
  return findings
}

/** Whether the pop waited longer than the limit while the message was available. */
export function wasIdle(pop: Pop, pushedAt: number, cameAt: number, boundMs: number): boolean {
  const open = Math.min(pop.end, cameAt) - Math.max(pop.start, pushedAt)
  return pop.outcome === 'ok' && pop.waitMs > 0 && open > boundMs
}
