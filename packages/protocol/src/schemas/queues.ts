import { type Static, Type } from '../typebox.ts'
import { GroupSchema } from './groups.ts'
import { Cursor, NameOrEmpty, Nullable, offsetFields, PageQuerySchema } from './name.ts'

export const ResourceQueuesQuerySchema = Type.Object({
  ...PageQuerySchema.properties,
  ...offsetFields,
  search: Type.Optional(Type.String({ description: 'A part of the name' })),
  namespace: Type.Optional(NameOrEmpty()),
  task: Type.Optional(NameOrEmpty()),
})

export const QueueSchema = Type.Object({
  queue: Type.String(),
  namespace: Nullable(Type.String()),
  task: Nullable(Type.String()),
  paused: Type.Boolean(),
  partitions: Type.Integer(),
  messages: Type.Integer(),
  scheduled: Type.Integer(),
  groups: Type.Array(GroupSchema),
})
export type Queue = Static<typeof QueueSchema>

export const QueuesAnswerSchema = Type.Object({
  queues: Type.Array(QueueSchema),
  cursor: Cursor(),
})
export type QueuesAnswer = Static<typeof QueuesAnswerSchema>

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
