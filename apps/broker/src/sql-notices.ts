// SQL functions report in notices what no caller asked for, such as a consumer group that a pop created. The node that
// called them logs it. A notice comes before the commit: in the rare case that the commit fails, the line is wrong.
import { shownGroup } from '@rouse/protocol'
import type pg from 'pg'
import { readHolder } from './holder.ts'
import type { Logger } from './log.ts'

/** Consumers that come and go, or fail everything, must not fill the log. */
const perSecondMax = 20
const prefix = 'rouse: '

const texts: Readonly<Record<string, string>> = {
  group_created: 'a consumer group was created',
  dead_letter: 'messages became dead letters, because their lease expired on the last attempt',
}

interface Reported {
  readonly event: string
  readonly consumerGroup?: string
  readonly holder?: string | null
  readonly queue?: string | null
  /** The number of dead letters, in a notice of dead letters. */
  readonly messages?: number
}

/**
 * Logs the notices on all connections of a pool, a limited number a second. `onDeadLetters` gets every dead letter of an
 * expired lease, logged or not.
 */
export function logNotices(
  pool: pg.Pool,
  log: Logger,
  nowMs: () => number,
  onDeadLetters: (queue: string, messages: number) => void = () => {},
): void {
  let second = 0
  let count = 0
  let leftOut = 0
  const report = (message: string): void => {
    const reported = read(message)
    if (reported === undefined) return
    const { event, queue, messages = 0 } = reported
    if (event === 'dead_letter' && queue != null) onDeadLetters(queue, messages)
    const now = Math.floor(nowMs() / 1_000)
    if (now !== second) count = 0
    second = now
    count += 1
    if (count > perSecondMax) {
      leftOut += 1
      return
    }
    const { consumerGroup, holder, ...fields } = reported
    const group = consumerGroup === undefined ? {} : { consumerGroup: shownGroup(consumerGroup) }
    const who = holder === undefined ? {} : readHolder(holder)
    const more = leftOut === 0 ? {} : { leftOut }
    leftOut = 0
    log.info({ ...fields, ...group, ...who, ...more }, texts[reported.event] ?? reported.event)
  }
  pool.on('connect', (client) => {
    client.on('notice', ({ message = '' }) => report(message))
  })
}

/** Undefined: the notice is not ours. */
function read(message: string): Reported | undefined {
  if (!message.startsWith(`${prefix}{`)) return undefined
  try {
    return JSON.parse(message.slice(prefix.length)) as Reported
  } catch {
    return undefined
  }
}
