// All rules over one history.
import type { History } from '../history.ts'
import { attempts } from './attempts.ts'
import { conservation } from './conservation.ts'
import { deadLetters } from './dead-letters.ts'
import { dedup } from './dedup.ts'
import { delays } from './delays.ts'
import { duplicates } from './duplicates.ts'
import type { Findings, Rule, Violation } from './findings.ts'
import { ghostsOf } from './ghosts.ts'
import { hostileNeighbours } from './hostile-neighbours.ts'
import { laneLeases } from './lane-leases.ts'
import { lateWakes } from './late-wakes.ts'
import { leftOver } from './left-over.ts'
import { lost } from './lost.ts'
import { nothingDelivered } from './nothing-delivered.ts'
import { order } from './order.ts'
import { overlappingLeases } from './overlapping-leases.ts'
import { pushOrder } from './push-order.ts'
import { type FaultRecovery, recoveries } from './recovery.ts'
import { slowFailovers } from './slow-failovers.ts'
import { staleAcks } from './stale-acks.ts'
import { transactions } from './transactions.ts'
import { unexpected } from './unexpected.ts'

const rules = {
  lost,
  unexpected,
  'out of order': order,
  'pushed out of order': pushOrder,
  'overlapping leases': overlappingLeases,
  'two leases on a lane': laneLeases,
  'stale acks accepted': staleAcks,
  'wrong attempts': attempts,
  'dedup doubles': dedup,
  'early deliveries': delays,
  'wrong dead letters': deadLetters,
  'unbalanced sums': conservation,
  'torn transactions': transactions,
  'left over': leftOver,
  'late wakes': lateWakes,
  'queues that moved nothing': nothingDelivered,
} satisfies Record<string, Rule>

/** These say more than what breaks them. */
const unexplainedDuplicates = 'unexplained duplicates'
const failovers = 'slow failovers'
const neighbours = 'hostile neighbours'
export type RuleName =
  | keyof typeof rules
  | typeof unexplainedDuplicates
  | typeof failovers
  | typeof neighbours

export interface RuleVerdict {
  readonly rule: RuleName
  readonly count: number
  /** The first of them. */
  readonly violations: readonly Violation[]
}

export interface Verdict {
  /** No rule fired. */
  readonly ok: boolean
  /** Messages that were stored, as far as anybody can know; in all, and by queue. */
  readonly messages: number
  readonly messagesOf: ReadonlyMap<string, number>
  readonly deliveries: number
  readonly faults: number
  readonly duplicates: number
  /** Handed out and undone by a failover: see ghosts.ts. */
  readonly ghosts: number
  readonly rules: readonly RuleVerdict[]
  readonly recoveries: readonly FaultRecovery[]
  /** What this machine cannot make, and what it lacks. */
  readonly notMade: readonly { readonly name: string; readonly lacks: string }[]
  /** What rules could not judge, in words. */
  readonly remarks: readonly string[]
}

export function check(history: History): Verdict {
  const repeated = duplicates(history)
  const recovered = recoveries(history)
  const harmed = hostileNeighbours(history, recovered)
  const verdicts = [
    ...Object.entries(rules).map(([rule, judge]) => verdictOf(rule as RuleName, judge(history))),
    verdictOf(unexplainedDuplicates, repeated.unexplained),
    verdictOf(failovers, slowFailovers(recovered)),
    verdictOf(neighbours, harmed.findings),
  ]
  return {
    ok: verdicts.every(({ count }) => count === 0),
    ...counted(history),
    deliveries: history.deliveryCount,
    faults: history.faults.filter(({ skipped }) => skipped === undefined).length,
    duplicates: repeated.count,
    rules: verdicts,
    recoveries: recovered,
    notMade: history.faults.flatMap(({ name, skipped }) =>
      skipped === undefined ? [] : [{ name, lacks: skipped }],
    ),
    remarks: harmed.remarks,
  }
}

function verdictOf(rule: RuleName, { count, violations }: Findings): RuleVerdict {
  return { rule, count, violations }
}

function counted(history: History): Pick<Verdict, 'messages' | 'messagesOf' | 'ghosts'> {
  const messagesOf = new Map<string, number>()
  let messages = 0
  let ghosts = 0
  for (const message of history.messages()) {
    const isStored = message.pushes.some(({ outcome }) => outcome === 'ok')
    if (isStored || message.deliveries.length > 0) {
      messages += 1
      messagesOf.set(message.queue, (messagesOf.get(message.queue) ?? 0) + 1)
    }
    ghosts += ghostsOf(history, message).size
  }
  return { messages, messagesOf, ghosts }
}
