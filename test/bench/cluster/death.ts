import { eventually } from '@rouse/testkit'
import type { BenchNode, LogEntry } from './node.ts'

/** The times of one death, read from the logs of both nodes. Both use the same clock. */
export interface Death {
  /**
   * From the kill until the other node suspects the killed node (`suspectMs`) and declares it dead
   * (`deadMs`).
   */
  readonly suspectMs: number
  readonly deadMs: number
  /** From the moment the restarted node binds its socket until the other node hears it again. */
  readonly rejoinedMs: number
}

const patience = { timeoutMs: 60_000 }

export async function dieAndReturn(node: BenchNode, other: BenchNode): Promise<Death> {
  const [ownFrom, seenFrom] = [node.log.length, other.log.length]
  const seen = (event: string): Promise<number> =>
    loggedAt(other, seenFrom, (entry) => entry.peer === node.id && entry.event === event)
  const killedAt = await node.kill()
  const [suspectAt, deadAt] = [await seen('suspect'), await seen('dead')]
  node.start()
  const boundAt = await loggedAt(node, ownFrom, ({ msg }) => msg === 'gossip listens')
  return {
    suspectMs: suspectAt - killedAt,
    deadMs: deadAt - killedAt,
    rejoinedMs: (await seen('joined')) - boundAt,
  }
}

/** Returns the time of the first matching log entry, from index `from` on. */
async function loggedAt(
  { log }: BenchNode,
  from: number,
  isIt: (entry: LogEntry) => boolean,
): Promise<number> {
  const find = (): LogEntry | undefined => log.slice(from).find(isIt)
  await eventually(() => find() !== undefined, patience)
  return Date.parse(find()?.time ?? '')
}
