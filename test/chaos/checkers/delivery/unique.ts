// At most one message at a time has a unique key, whatever nodes and producers are involved. A push that is a
// duplicate names a message that was stored.
//
// A message is certainly open from the end of the push that stored it (or of its first delivery) until the
// start of the first ack that may have ended it.
import type { History } from '../../history/history.ts'
import type { Message } from '../../history/history-views.ts'
import { Findings } from '../findings.ts'
import { ghostsOf } from './ghosts.ts'

/** The value of a message in a queue with unique keys ends with its key. */
export function withKey(value: string, key: string): string {
  return `${value}@${key}`
}

interface Open {
  readonly message: Message
  readonly from: number
  readonly to: number
}

export function unique(history: History): Findings {
  const findings = new Findings()
  const byKey = new Map<string, Open[]>()
  const named = new Map<number, Message>()
  const stored = new Set<number>()
  for (const message of history.messages()) {
    if (history.queues.get(message.queue)?.hasUniqueKeys !== true) continue
    if (ghostsOf(history, message).size > 0) continue
    for (const { status, id } of message.pushes) {
      if (status === 'duplicate') named.set(id, message)
      else if (status !== undefined) stored.add(id)
    }
    for (const { id } of message.deliveries) stored.add(id)
    const open = openTime(message)
    if (open === undefined) continue
    const key = JSON.stringify([message.queue, message.value.replace(/^.*@/, '')])
    const known = byKey.get(key)
    if (known === undefined) byKey.set(key, [open])
    else known.push(open)
  }
  for (const [key, opens] of byKey) {
    let last: Open | undefined
    for (const open of opens.sort((a, b) => a.from - b.from)) {
      if (last !== undefined && open.from < last.to) {
        const both = `${last.message.value} and ${open.message.value}`
        findings.add(
          `${both} had the unique key ${key} at the same time`,
          last.message,
          open.message,
        )
      }
      if (last === undefined || open.to > last.to) last = open
    }
  }
  for (const [id, message] of named) {
    if (!stored.has(id)) {
      findings.add(`${message.value} is a duplicate of a message that was never stored`, message)
    }
  }
  return findings
}

function openTime(message: Message): Open | undefined {
  const { pushes, deliveries } = message
  const storedBy = [
    ...pushes.filter(({ status }) => status === 'queued').map(({ end }) => end),
    ...deliveries.map(({ end }) => end),
  ]
  if (storedBy.length === 0) return undefined
  const endings = deliveries.flatMap(({ acks }) =>
    acks.filter(({ status, taken }) => status === 'completed' && taken !== 'no'),
  )
  const from = Math.min(...storedBy)
  const to = Math.min(...endings.map(({ start }) => start), Number.POSITIVE_INFINITY)
  return to > from ? { message, from, to } : undefined
}
