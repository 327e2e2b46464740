import type { FailedAttempt as FailedAttemptAnswer } from '@rouse/protocol'
import type { FailedAttempt } from '@rouse/storage'

/** A failed attempt, as the API shows it. */
export function toAttempt(attempt: FailedAttempt): FailedAttemptAnswer {
  return {
    ...attempt,
    deliveredAt: attempt.deliveredAt === null ? null : new Date(attempt.deliveredAt).toISOString(),
    endedAt: new Date(attempt.endedAt).toISOString(),
  }
}
