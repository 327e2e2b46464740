// The highest priority first, whatever nodes pop: a pop does not return a message while one of a higher priority
// is ready in the same queue.
//
// A message is certainly ready from the response to its push until the start of the pop that first got it. If a pop
// without a response may have taken it before, nothing is certain.
import type { History } from '../../history/history.ts'
import type { Delivery, Message } from '../../history/history-views.ts'
import { Findings } from '../findings.ts'

/** The value of a message in a queue with priorities ends with its priority. */
export function withPriority(value: string, level: number): string {
  return `${value}@${level}`
}

interface Ready {
  readonly message: Message
  readonly from: number
  readonly to: number
}

export function priority(history: History): Findings {
  const findings = new Findings()
  for (const { queue, hasPriorities } of history.queues.values()) {
    if (hasPriorities === true) checkQueue(history, queue, findings)
  }
  return findings
}

function checkQueue(history: History, queue: string, findings: Findings): void {
  const messages = [...history.messages()].filter((message) => message.queue === queue)
  const ready = messages.flatMap(readyTime).sort((a, b) => a.from - b.from)
  const longestMs = ready.reduce((longest, { from, to }) => Math.max(longest, to - from), 0)
  for (const message of messages) {
    for (const delivery of message.deliveries) {
      const higher = readyBefore(ready, delivery, longestMs).find(
        (other) => levelOf(other.message) > levelOf(message) && isCertain(history, other, delivery),
      )
      if (higher === undefined) continue
      findings.add(
        `${message.value} of ${queue} was delivered while ${higher.message.value} was ready`,
        delivery,
        higher.message,
      )
    }
  }
}

function readyTime(message: Message): Ready[] {
  const stored = message.pushes.filter(({ status }) => status === 'queued')
  const [first] = [...message.deliveries].sort((a, b) => a.begins - b.begins)
  if (stored.length === 0 || first?.attempt !== 1) return []
  const from = Math.max(...stored.map(({ end }) => end))
  return from < first.begins ? [{ message, from, to: first.begins }] : []
}

/** The messages that were ready during the whole pop of this delivery. */
function readyBefore(ready: readonly Ready[], delivery: Delivery, longestMs: number): Ready[] {
  const found: Ready[] = []
  for (let i = countBefore(ready, delivery.begins) - 1; i >= 0; i -= 1) {
    const one = ready[i] as Ready
    if (one.from < delivery.end - longestMs) break
    if (one.to > delivery.end) found.push(one)
  }
  return found
}

/** How many of them begin before that time. */
function countBefore(ready: readonly Ready[], time: number): number {
  let low = 0
  let high = ready.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ready[middle]?.from ?? 0) < time) low = middle + 1
    else high = middle
  }
  return low
}

function isCertain(history: History, { from }: Ready, delivery: Delivery): boolean {
  return !history.lostPop(delivery, from, delivery.end) && !history.forgets(from, delivery.end)
}

function levelOf({ value }: Message): number {
  return Number(value.replace(/^.*@/, ''))
}
