// A message as its consumer groups see it: its state, attempts, result and progress.
import type { Attempt, MessageAnswer, MessageState } from '@rouse/protocol'
import type { FailedAttemptRow, MessageInGroup } from '@rouse/storage'
import { readHolder } from '../../holder.ts'
import { jsonWith } from '../../http/stored-json.ts'

/** The groups as JSON text. Results and progress are copied without parsing, as payloads are. */
export function groupsText(
  groups: readonly MessageInGroup[],
  nameOf: (group: string) => string = (group) => group,
): string {
  const texts = groups.map((group) => {
    const { result, progress } = group
    const fields = { ...toGroup(group), consumerGroup: nameOf(group.consumerGroup) }
    return jsonWith(fields, { result, progress })
  })
  return `[${texts.join(',')}]`
}

function toGroup(
  found: MessageInGroup,
): Omit<MessageAnswer['groups'][number], 'result' | 'progress'> {
  const { leaseExpiresAt, deliveredAt, nextTryAt, history, progressAt, ...group } = found
  const { result: _, progress: __, ...fields } = group
  return {
    ...fields,
    status: group.status as MessageAnswer['groups'][number]['status'],
    state: shownState(group.status),
    ...readHolder(group.holder),
    deliveredAt: isoOf(deliveredAt),
    leaseExpiresAt: isoOf(leaseExpiresAt),
    nextTryAt: isoOf(nextTryAt),
    completedAt: isoOf(completedAtOf(found)),
    progressAt: isoOf(progressAt),
    history: history.map(toAttempt),
  }
}

/** When the group completed the message, in ms since 1970. Null if it has not, or the time was not recorded. */
export function completedAtOf({ status, completedAt, history }: MessageInGroup): number | null {
  if (status !== 'completed') return null
  const recorded = history.findLast(({ outcome }) => outcome === 'completed')?.endedAt
  return recorded ?? completedAt
}

function isoOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

/** An attempt, as the API shows it. */
export function toAttempt(attempt: FailedAttemptRow): Attempt {
  return {
    ...attempt,
    ...readHolder(attempt.holder),
    deliveredAt: attempt.deliveredAt === null ? null : new Date(attempt.deliveredAt).toISOString(),
    endedAt: new Date(attempt.endedAt).toISOString(),
  }
}

export function shownState(status: string): MessageState {
  return status === 'pending' ? 'ready' : (status as MessageState)
}
