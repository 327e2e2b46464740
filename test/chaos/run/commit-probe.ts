// Measures whether the machine is fast enough to check time limits: the harness commits ten times a second,
// without using a queue. A commit is timed from when it was due, so that a process that got no CPU time is
// noticed, too.
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { monotonicMs } from '../history/clock.ts'
import type { Span } from '../history/windows.ts'

const everyMs = 100
const slowMs = 150
const answerMsMax = 10_000

export interface CommitProbe {
  /** Resolves with the spans in which commits were slow. */
  stop(): Promise<Span[]>
}

export async function startCommitProbe(connectionString: string): Promise<CommitProbe> {
  const session = new pg.Client({
    connectionString,
    application_name: 'chaos',
    query_timeout: answerMsMax,
  })
  session.on('error', () => {})
  await session.connect()
  const slow: Span[] = []
  let isStopped = false
  const probing = (async () => {
    let due = monotonicMs()
    while (!isStopped) {
      await session.query(`select pg_logical_emit_message(true, 'chaos', 'probe')`).catch(() => {})
      const now = monotonicMs()
      if (now - due > slowMs) slow.push({ from: due, to: now })
      due = Math.max(due + everyMs, now)
      await delay(due - now)
    }
  })()
  return {
    async stop() {
      isStopped = true
      await probing
      await session.end().catch(() => {})
      return slow
    },
  }
}
