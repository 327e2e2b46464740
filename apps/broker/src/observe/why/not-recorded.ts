// Describes in words what is missing in the timeline of a message, so that a reader is not shown a guess
// where a time is unknown.
import { isSampled, type MessageWhyAnswer, sampledOneOf } from '@rouse/protocol'
import type { MessageFacts } from './explain-message.ts'
import { nameOf } from './explain-message.ts'

export type Missing = MessageWhyAnswer['notRecorded'][number]

export interface RecordingState {
  readonly id: string
  readonly slowMs: number
  /** Nodes that did not answer. */
  readonly unreachable: readonly { readonly id: string }[]
}

export function missingSteps(facts: MessageFacts, state: RecordingState): Missing[] {
  const why = reasonOf(state)
  const missing: Missing[] = []
  const add = (step: Missing['step'], text: string): void => {
    missing.push({ step, text: `not recorded: ${text} (${why})` })
  }
  if (facts.push === undefined) add('received', 'when the push was received')
  for (const attempt of unseenAttempts(facts)) {
    add('popped', `the hint, the grant and the pop of attempt ${attempt}`)
  }
  for (const { attempt, holder, answeredMs, leaseId } of facts.deliveries) {
    const who = nameOf(holder)
    if (answeredMs === null) add('answered', `when attempt ${attempt} was sent to ${who}`)
    if (!isEndKnown(facts, attempt, leaseId)) {
      add('acked', `when attempt ${attempt} of ${who} was acknowledged`)
    }
  }
  return missing
}

/** Attempts that the database has counted, but whose pop is not recorded. */
function unseenAttempts({ group, deliveries }: MessageFacts): number[] {
  if (group === undefined) return []
  const recorded = new Set(deliveries.map(({ attempt }) => attempt))
  const all = Array.from({ length: group.attempts }, (_, i) => i + 1)
  return all.filter((attempt) => !recorded.has(attempt)).slice(0, 10)
}

function isEndKnown(
  { group, deliveries }: MessageFacts,
  attempt: number,
  leaseId: string,
): boolean {
  if (group?.history.some((one) => one.attempt === attempt) === true) return true
  if (group?.status === 'leased' && group.attempts === attempt) return true
  if (group?.completedAt != null) return true
  return deliveries.some((one) => one.leaseId === leaseId && one.ackedMs !== null)
}

function reasonOf({ id, slowMs, unreachable }: RecordingState): string {
  if (unreachable.length > 0) {
    return `${unreachable.map((node) => node.id).join(', ')} did not answer`
  }
  if (!isSampled(id)) {
    return `nodes record 1 message in ${sampledOneOf}, and those that take longer than ${slowMs} ms`
  }
  return 'nodes keep only the newest records, and lose them when they restart'
}
