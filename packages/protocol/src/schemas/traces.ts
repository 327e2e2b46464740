import { type Static, Type } from 'typebox'
import { Name, Nullable, Time } from './name.ts'

export const TraceBodySchema = Type.Object({
  transactionId: Name(),
  partitionId: Type.String(),
  consumerGroup: Type.Optional(Name()),
  traceNames: Type.Optional(Type.Array(Name(), { maxItems: 100 })),
  eventType: Type.Optional(Name()),
  data: Type.Unknown(),
})
export type TraceBody = Static<typeof TraceBodySchema>

export const TraceEventSchema = Type.Object({
  eventType: Type.String(),
  consumerGroup: Nullable(Type.String()),
  traceNames: Type.Array(Type.String()),
  data: Type.Unknown(),
  createdAt: Time,
})
export type TraceEvent = Static<typeof TraceEventSchema>

export const TracesAnswerSchema = Type.Object({ traces: Type.Array(TraceEventSchema) })
export type TracesAnswer = Static<typeof TracesAnswerSchema>
