import { limits } from '../limits.ts'
import { type Static, Type } from '../typebox.ts'
import { GroupSchema } from './groups.ts'
import { Cursor, NameOrEmpty, Nullable, offsetFields, PageQuerySchema, Time } from './name.ts'

export const ResourceQueuesQuerySchema = Type.Object({
  ...PageQuerySchema.properties,
  ...offsetFields,
  search: Type.Optional(Type.String({ description: 'A part of the name' })),
  namespace: Type.Optional(NameOrEmpty()),
  task: Type.Optional(NameOrEmpty()),
})

/** A dashboard shows all queues of a large cluster in one list. */
export const QueueFiguresQuerySchema = Type.Object({
  ...ResourceQueuesQuerySchema.properties,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.queuesPerPageMax })),
})

export const QueueSchema = Type.Object({
  queue: Type.String(),
  name: Type.String({ description: 'Repeats queue for existing clients' }),
  namespace: Nullable(Type.String()),
  task: Nullable(Type.String()),
  paused: Type.Boolean(),
  partitions: Type.Integer(),
  messages: Type.Integer(),
  scheduled: Type.Integer(),
  groups: Type.Array(GroupSchema),
})
export type Queue = Static<typeof QueueSchema>

/** A queue by itself. */
export const QueueDetailSchema = Type.Object({
  ...QueueSchema.properties,
  options: Type.Record(Type.String(), Type.Unknown()),
  purging: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), { description: 'While a purge runs' }),
  ),
})

export const QueuesAnswerSchema = Type.Object({
  queues: Type.Array(QueueSchema),
  cursor: Cursor(),
})
export type QueuesAnswer = Static<typeof QueuesAnswerSchema>

export const queueStates = ['ok', 'paused', 'held', 'no_consumers'] as const

const count = (description: string) => Type.Integer({ description })

const rate = (description: string) =>
  Type.Number({ description: `${description}; mean of the last 10 s, on all nodes` })

/** A queue under `/api/v1/queues`. */
export const QueueFiguresSchema = Type.Object({
  queue: Type.String(),
  namespace: Nullable(Type.String()),
  task: Nullable(Type.String()),
  options: Type.Record(Type.String(), Type.Unknown()),
  paused: Type.Boolean(),
  createdAt: Time,
  ready: count('Not yet delivered to the group that is furthest behind; all, if there is no group'),
  leased: count('Held by consumers, summed over the groups'),
  retrying: count('To be delivered again, summed over the groups'),
  scheduled: count('Not due yet'),
  dead: count('Dead letters'),
  consumers: count('Pops that wait on any node, and pops whose messages are held'),
  pushedPerSecond: rate('Messages that enter the queue'),
  completedPerSecond: rate('Messages that are completed, summed over the groups'),
  oldestAgeMs: Nullable(count('Age of the oldest message that is not yet delivered')),
  held: Nullable(
    Type.Object(
      { until: Time, errorMessage: Nullable(Type.String()) },
      { description: 'A failed message delays its partition until then' },
    ),
  ),
  state: Type.Enum(queueStates),
})
export type QueueFigures = Static<typeof QueueFiguresSchema>

export const QueueFiguresAnswerSchema = Type.Object({
  queues: Type.Array(QueueFiguresSchema),
  asOf: Time,
  cursor: Cursor(),
})
export type QueueFiguresAnswer = Static<typeof QueueFiguresAnswerSchema>

export const DeletedAnswerSchema = Type.Object({ deleted: Type.Literal(true) })
export type DeletedAnswer = Static<typeof DeletedAnswerSchema>

export const PausedAnswerSchema = Type.Object({ queue: Type.String(), paused: Type.Boolean() })
export type PausedAnswer = Static<typeof PausedAnswerSchema>

/** The response with 200, or with 202 if the purge runs in the background. The queue's details show `purging`
 * until the purge is done. */
export const PurgedAnswerSchema = Type.Union([
  Type.Object({ queue: Type.String(), purged: Type.Integer() }),
  Type.Object({ queue: Type.String(), purging: Type.Literal(true) }),
])
export type PurgedAnswer = Static<typeof PurgedAnswerSchema>
