import { type Static, Type } from '../typebox.ts'
import { Cursor, Ignored, Name, Nullable, Time } from './name.ts'
import { SubscriptionMode } from './pop.ts'

export const GroupSchema = Type.Object({
  consumerGroup: Type.String(),
  name: Type.String({ description: 'Repeats consumerGroup for existing clients' }),
  queue: Type.String(),
  queueName: Type.String({ description: 'Repeats queue for existing clients' }),
  pending: Type.Integer(),
  inFlight: Type.Integer(),
  redeliveries: Type.Integer(),
  blockedLanes: Type.Integer(),
  leasedLanes: Type.Integer(),
  dead: Type.Integer(),
  oldestPendingAt: Nullable(Time),
  lastSeenAt: Time,
})
export type Group = Static<typeof GroupSchema>

export const GroupsAnswerSchema = Type.Object({
  groups: Type.Array(GroupSchema),
  cursor: Cursor(),
})
export type GroupsAnswer = Static<typeof GroupsAnswerSchema>

/** A consumer group of a queue under `/api/v1/groups`. */
export const GroupFiguresSchema = Type.Object({
  consumerGroup: Type.String({ description: '`default` is the unnamed group' }),
  queue: Type.String(),
  ready: Type.Integer({ description: 'Not yet delivered' }),
  leased: Type.Integer(),
  retrying: Type.Integer(),
  dead: Type.Integer(),
  oldestAgeMs: Nullable(Type.Integer()),
  lastSeenAt: Time,
})
export type GroupFigures = Static<typeof GroupFiguresSchema>

export const GroupFiguresAnswerSchema = Type.Object({
  groups: Type.Array(GroupFiguresSchema),
  cursor: Cursor(),
})
export type GroupFiguresAnswer = Static<typeof GroupFiguresAnswerSchema>

/** A group in every queue that has it. */
export const GroupInQueuesAnswerSchema = Type.Object({
  consumerGroup: Type.String(),
  queues: Type.Array(GroupFiguresSchema),
})

/** The response to a seek and to a subscription. */
export const MovedAnswerSchema = Type.Object({
  success: Type.Literal(true),
  queue: Type.String(),
  consumerGroup: Type.String(),
})

export const MovedPartitionAnswerSchema = Type.Object({
  ...MovedAnswerSchema.properties,
  partition: Type.String(),
})

/** `queues`: those where the group was moved, if the request named none. */
export const SubscribedAnswerSchema = Type.Object({
  success: Type.Literal(true),
  queue: Type.Optional(Type.String()),
  queues: Type.Optional(Type.Array(Type.String())),
  consumerGroup: Type.String(),
})

export const LaggingQuerySchema = Type.Object({
  minLagSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 31_536_000, default: 3600 })),
})

/** State and subscription of a group are one thing here, so both are always deleted. */
export const DeleteGroupQuerySchema = Type.Object({ deleteMetadata: Ignored() })

/** Exactly one of the two fields is required. */
export const SeekBodySchema = Type.Object({
  timestamp: Type.Optional(Type.String({ description: 'A time with a time zone' })),
  toEnd: Type.Optional(Type.Boolean()),
})
export type SeekBody = Static<typeof SeekBodySchema>

/** At least one field is required. The fields have the same meaning as for a pop. */
export const SubscriptionBodySchema = Type.Object({
  subscriptionMode: Type.Optional(SubscriptionMode()),
  subscriptionFrom: Type.Optional(Type.String()),
  subscriptionTimestamp: Type.Optional(
    Type.String({ description: 'The name of subscriptionFrom in old clients' }),
  ),
})
export type SubscriptionBody = Static<typeof SubscriptionBodySchema>

/** Without `queue` the request applies to every queue that has the group. */
export const GroupSubscriptionBodySchema = Type.Object({
  ...SubscriptionBodySchema.properties,
  queue: Type.Optional(Name()),
})
export type GroupSubscriptionBody = Static<typeof GroupSubscriptionBodySchema>
