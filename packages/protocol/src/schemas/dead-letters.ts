import { limits } from '../limits.ts'
import { type Static, Type } from '../typebox.ts'
import { Cursor, Name, Nullable, offsetFields, PageQuerySchema, spanFields, Time } from './name.ts'

/** The filter; an absent field matches everything. `from` and `to` are times of the failure. */
const filterFields = {
  consumerGroup: Type.Optional(Name()),
  partition: Type.Optional(Name()),
  errorCode: Type.Optional(Type.String({ maxLength: limits.errorCodeBytesMax })),
  errorMessage: Type.Optional(Type.String({ maxLength: limits.errorTextBytesMax })),
  transactionId: Type.Optional(Name()),
  ...spanFields,
}

/**
 * Only for the documentation. In a query string all values are text, and `parseDecimal` reads the numbers.
 */
export const DeadLettersQuerySchema = Type.Object({
  queue: Type.Optional(Name()),
  ...filterFields,
  ...offsetFields,
})
export type DeadLettersQuery = Static<typeof DeadLettersQuerySchema>

/** The queue is required, so that no request deletes the dead letters of all queues. */
export const PurgeLettersQuerySchema = Type.Object({ queue: Name(), ...filterFields })

export const DeadLetterGroupsQuerySchema = Type.Object({
  queue: Type.Optional(Name()),
  consumerGroup: Type.Optional(Name()),
  limit: offsetFields.limit,
})

export const DeadLettersPageQuerySchema = Type.Object({
  queue: Type.Optional(Name()),
  ...filterFields,
  ...PageQuerySchema.properties,
})

export const FailedAttemptSchema = Type.Object({
  attempt: Type.Integer(),
  outcome: Type.Enum(['failed', 'expired', 'retry', 'dlq']),
  errorCode: Nullable(Type.String()),
  errorMessage: Nullable(Type.String()),
  holder: Nullable(Type.String({ description: 'The node and worker that delivered the message' })),
  consumer: Nullable(Type.String({ description: 'The name that the consumer gave itself' })),
  deliveredAt: Nullable(Time),
  endedAt: Time,
})
export type FailedAttempt = Static<typeof FailedAttemptSchema>

/** Completed attempts are recorded with a result, and in queues with the option `history: "all"`. */
export const AttemptSchema = Type.Object({
  ...FailedAttemptSchema.properties,
  outcome: Type.Enum(['failed', 'expired', 'retry', 'dlq', 'completed']),
})
export type Attempt = Static<typeof AttemptSchema>

export const DeadLetterSchema = Type.Object({
  id: Type.String({ description: 'The id of the dead letter' }),
  messageId: Type.String(),
  transactionId: Type.String(),
  traceId: Nullable(Type.String()),
  partitionId: Type.String(),
  partition: Nullable(Type.String()),
  queue: Type.String(),
  consumerGroup: Type.String(),
  seq: Type.Integer(),
  data: Type.Unknown(),
  headers: Nullable(Type.Record(Type.String(), Type.Unknown())),
  errorMessage: Nullable(Type.String()),
  errorCode: Nullable(Type.String()),
  attempts: Type.Integer(),
  retryCount: Type.Integer({ description: 'Repeats attempts for existing clients' }),
  createdAt: Time,
  failedAt: Time,
  history: Type.Array(AttemptSchema, {
    description: 'Recorded attempts, oldest first, including those before a redrive',
  }),
})
export type DeadLetter = Static<typeof DeadLetterSchema>

export const DeadLettersAnswerSchema = Type.Object({
  messages: Type.Array(DeadLetterSchema),
  total: Type.Integer(),
})
export type DeadLettersAnswer = Static<typeof DeadLettersAnswerSchema>

/** A dead letter under `/api/v1/dead-letters`. */
const letter = Type.Object({
  ...DeadLetterSchema.properties,
  id: Type.String({ description: 'The id of the message' }),
  letterId: Type.String({ description: 'The number of the dead letter' }),
})

export const DeadLettersPageAnswerSchema = Type.Object({
  deadLetters: Type.Array(letter),
  cursor: Cursor(),
})

export const DeadLettersOfMessageAnswerSchema = Type.Object({ deadLetters: Type.Array(letter) })

/** Dead letters grouped by error code. Those without a code are grouped by their error message. */
const errorCounts = Type.Array(
  Type.Object({
    queue: Type.String(),
    consumerGroup: Type.String(),
    errorCode: Nullable(Type.String()),
    errorMessage: Nullable(Type.String({ description: 'From the latest dead letter' })),
    count: Type.Integer(),
    firstFailedAt: Time,
    lastFailedAt: Time,
  }),
)
export const DeadLetterGroupsAnswerSchema = Type.Object({ groups: errorCounts })
export const DeadLetterErrorsAnswerSchema = Type.Object({ errors: errorCounts })
export type DeadLetterGroupsAnswer = Static<typeof DeadLetterGroupsAnswerSchema>

export const RedriveBodySchema = Type.Object({
  queue: Name(),
  where: Type.Optional(
    Type.Object({
      ...filterFields,
      ids: Type.Optional(
        Type.Array(Type.String({ maxLength: 36 }), {
          maxItems: limits.pageSizeMax,
          description: 'Ids of dead letters or of messages',
        }),
      ),
    }),
  ),
  rate: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100_000, description: 'Messages per second' }),
  ),
  dryRun: Type.Optional(Type.Boolean({ default: false })),
})
export type RedriveBody = Static<typeof RedriveBodySchema>

/** The response when a redrive is started (202), read, or cancelled. */
export const RedriveSchema = Type.Object({
  id: Type.String(),
  queue: Type.String(),
  state: Type.Enum(['running', 'done', 'cancelled']),
  moved: Type.Integer(),
  total: Type.Integer(),
  rate: Nullable(Type.Integer()),
  startedAt: Time,
  updatedAt: Time,
})
export type Redrive = Static<typeof RedriveSchema>

/** The response to a dry run (200): nothing was moved. */
export const RedrivePlanSchema = Type.Object({
  dryRun: Type.Literal(true),
  queue: Type.String(),
  total: Type.Integer(),
  lanes: Type.Array(
    Type.Object({
      partition: Nullable(Type.String()),
      consumerGroup: Type.String(),
      count: Type.Integer(),
    }),
  ),
})
export type RedrivePlan = Static<typeof RedrivePlanSchema>

export const PurgedLettersAnswerSchema = Type.Object({
  queue: Type.String(),
  deleted: Type.Integer(),
})
export type PurgedLettersAnswer = Static<typeof PurgedLettersAnswerSchema>
