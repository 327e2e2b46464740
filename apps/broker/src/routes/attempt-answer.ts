import type { FailedAttempt as FailedAttemptAnswer } from '@rouse/protocol'
import type { FailedAttempt } from '@rouse/storage'

/** An attempt that did not complete, as the API shows it. */
export function toAttempt(attempt: FailedAttempt): FailedAttemptAnswer {
  return {
    ...attempt,
    deliveredAt: attempt.deliveredAt === null ? null : new Date(attempt.deliveredAt).toISOString(),
    endedAt: new Date(attempt.endedAt).toISOString(),
  }
}
