// Two pushes with one key within the window store one message with one id, even if they go to different
// nodes.
import type { History } from '../../history/history.ts'
import type { Message } from '../../history/history-views.ts'
import { Findings } from '../findings.ts'
import { ghostsOf } from './ghosts.ts'

export function dedup(history: History): Findings {
  const findings = new Findings()
  for (const message of history.messages()) {
    const windowMs = history.queues.get(message.queue)?.dedupWindowMs ?? 0
    if (!areOneKey(message, windowMs) || mayBeForgotten(history, message)) continue
    const ghosts = ghostsOf(history, message)
    const ids = new Set(message.deliveries.map(({ id }) => id).filter((id) => !ghosts.has(id)))
    for (const { outcome, id } of message.pushes) if (outcome === 'ok' && id >= 0) ids.add(id)
    if (ids.size > 1) findings.add(`${message.value} has ${ids.size} ids for one key`, message)
    const stored = message.pushes.filter(
      ({ status }) => status === 'queued' || status === 'scheduled',
    )
    if (stored.length > 1)
      findings.add(`${message.value} was stored ${stored.length} times for one key`, message)
  }
  return findings
}

/** Whether a purge may have removed the key: a purge also removes the keys of its messages. */
function mayBeForgotten({ operations }: History, { queue, pushes }: Message): boolean {
  const from = Math.min(...pushes.map(({ start }) => start))
  const to = Math.max(...pushes.map(({ end }) => end))
  return pushes.length > 1 && operations.touch(['purge'], { queue, group: '' }, from, to)
}

/**
 * Whether every push that may have stored the message had the same key, and the key was still known when the
 * last push ended.
 */
function areOneKey({ pushes }: Message, windowMs: number): boolean {
  const possible = pushes.filter(({ outcome }) => outcome !== 'fail')
  const [first] = possible
  if (first === undefined || first.key < 0) return false
  if (!possible.every(({ key, partition }) => key === first.key && partition === first.partition)) {
    return false
  }
  const from = Math.min(...possible.map(({ start }) => start))
  return Math.max(...possible.map(({ start }) => start)) - from < windowMs
}
