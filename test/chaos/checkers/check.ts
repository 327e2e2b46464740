// Applies all rules to one history. The rules cite the promises of README.md by number.
import type { History } from '../history/history.ts'
import { isStored } from './certainty.ts'
import { conservation } from './consistency/conservation.ts'
import { leftOver } from './consistency/left-over.ts'
import { lostResults } from './consistency/results.ts'
import { transactions } from './consistency/transactions.ts'
import { cancelledAndDelivered } from './delivery/cancelled.ts'
import { deadLetters } from './delivery/dead-letters.ts'
import { dedup } from './delivery/dedup.ts'
import { duplicates } from './delivery/duplicates.ts'
import { ghostsOf } from './delivery/ghosts.ts'
import { lost } from './delivery/lost.ts'
import { movedLetters } from './delivery/moved-letters.ts'
import { nothingDelivered } from './delivery/nothing-delivered.ts'
import { unexpected } from './delivery/unexpected.ts'
import { unique } from './delivery/unique.ts'
import type { Findings, Rule, Violation } from './findings.ts'
import { attempts } from './leases/attempts.ts'
import { laneLeases } from './leases/lane-leases.ts'
import { overlappingLeases } from './leases/overlapping-leases.ts'
import { staleAcks } from './leases/stale-acks.ts'
import { order } from './order/order.ts'
import { priority } from './order/priority.ts'
import { pushOrder } from './order/push-order.ts'
import { delays } from './timing/delays.ts'
import { hostileNeighbours } from './timing/hostile-neighbours.ts'
import { lateWakes } from './timing/late-wakes.ts'
import { type FaultRecovery, recoveries } from './timing/recovery.ts'
import { slowFailovers } from './timing/slow-failovers.ts'

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
  'shared unique keys': unique,
  'early deliveries': delays,
  'cancelled and delivered': cancelledAndDelivered,
  'wrong dead letters': deadLetters,
  'letters lost or doubled': movedLetters,
  'delivered before a higher priority': priority,
  'unbalanced sums': conservation,
  'torn transactions': transactions,
  'left over': leftOver,
  'results lost': lostResults,
  'late wakes': lateWakes,
  'queues that moved nothing': nothingDelivered,
} satisfies Record<string, Rule>

/** These rules return more than their findings. */
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
  /** The first violations of the rule. */
  readonly violations: readonly Violation[]
}

export interface Verdict {
  /** No rule was broken. */
  readonly ok: boolean
  /** Messages that were certainly stored, in total and by queue. */
  readonly messages: number
  readonly messagesOf: ReadonlyMap<string, number>
  readonly deliveries: number
  readonly faults: number
  readonly duplicates: number
  /** The number of messages that were delivered and then undone by a failover: see ghosts.ts. */
  readonly ghosts: number
  readonly rules: readonly RuleVerdict[]
  readonly recoveries: readonly FaultRecovery[]
  /** Faults that this machine cannot inject, and what is missing. */
  readonly notMade: readonly { readonly name: string; readonly lacks: string }[]
  /** Notes about what the rules could not check. */
  readonly remarks: readonly string[]
}

export function check(history: History): Verdict {
  const repeated = duplicates(history)
  const recovered = recoveries(history)
  const harmed = hostileNeighbours(history, recovered)
  const verdicts = [
    ...Object.entries(rules).map(([name, rule]) => verdictOf(name as RuleName, rule(history))),
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
    if (isStored(message) || message.deliveries.length > 0) {
      messages += 1
      messagesOf.set(message.queue, (messagesOf.get(message.queue) ?? 0) + 1)
    }
    ghosts += ghostsOf(history, message).size
  }
  return { messages, messagesOf, ghosts }
}
