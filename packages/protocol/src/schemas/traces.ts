import { type Static, Type } from '../typebox.ts'
import { Name, Nullable, offsetFields, PageQuerySchema, spanFields, Time } from './name.ts'

export const TraceBodySchema = Type.Object({
  transactionId: Name(),
  partitionId: Type.String(),
  consumerGroup: Type.Optional(Name()),
  traceNames: Type.Optional(Type.Array(Name(), { maxItems: 100 })),
  eventType: Type.Optional(Name()),
  data: Type.Unknown(),
})
export type TraceBody = Static<typeof TraceBodySchema>

export const MessageTracesQuerySchema = Type.Object({ limit: offsetFields.limit })

export const NamedTracesQuerySchema = Type.Object({
  ...PageQuerySchema.properties,
  ...offsetFields,
  ...spanFields,
})

export const TraceNamesQuerySchema = Type.Object({
  ...offsetFields,
  search: Type.Optional(Type.String({ description: 'A part of the name' })),
})

/** The response with 201. */
export const TraceAnswerSchema = Type.Object({
  success: Type.Literal(true),
  id: Type.String(),
  traceId: Type.String({ description: 'Repeats id for existing clients' }),
})
export type TraceAnswer = Static<typeof TraceAnswerSchema>

export const TraceEventSchema = Type.Object({
  id: Nullable(Type.String({ description: 'Null for an attempt, which the node itself adds' })),
  queue: Type.String(),
  partition: Nullable(Type.String()),
  partitionId: Type.String(),
  transactionId: Type.String(),
  eventType: Type.String(),
  consumerGroup: Nullable(Type.String()),
  traceNames: Type.Array(Type.String()),
  data: Type.Unknown(),
  createdAt: Time,
})
export type TraceEvent = Static<typeof TraceEventSchema>

/** Events of a message come oldest first and include failed attempts. Events of a name come newest first. */
export const TracesAnswerSchema = Type.Object({
  traces: Type.Array(TraceEventSchema),
  cursor: Type.Optional(Nullable(Type.String())),
})
export type TracesAnswer = Static<typeof TracesAnswerSchema>

export const TraceNamesAnswerSchema = Type.Object({
  names: Type.Array(Type.Object({ name: Type.String(), events: Type.Integer(), lastAt: Time })),
})
export type TraceNamesAnswer = Static<typeof TraceNamesAnswerSchema>
