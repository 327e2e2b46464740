import { eventually } from '@rouse/testkit'
import type { BenchNode, LogEntry } from './cluster-node.ts'

/** Of one death, by the logs of both nodes, whose clock is the same. */
export interface Death {
  /** From the kill until the other node took it for silent, and for dead. */
  readonly suspectMs: number
  readonly deadMs: number
  /** From its socket until the other node heard it again. */
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

/** When the node logged such an entry, behind the first ones. */
async function loggedAt(
  { log }: BenchNode,
  from: number,
  isIt: (entry: LogEntry) => boolean,
): Promise<number> {
  const find = (): LogEntry | undefined => log.slice(from).find(isIt)
  await eventually(() => find() !== undefined, patience)
  return Date.parse(find()?.time ?? '')
}
