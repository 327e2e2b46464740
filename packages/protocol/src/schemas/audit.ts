import { type Static, Type } from '../typebox.ts'
import { Cursor, Name, Nullable, PageQuerySchema, Time } from './name.ts'

export const auditOutcomes = ['done', 'refused', 'failed'] as const

export const AuditQuerySchema = Type.Object({
  principal: Type.Optional(Name('Who acted: the name of a key')),
  target: Type.Optional(Name('A queue, a schedule or the id of a key')),
  outcome: Type.Optional(Type.Enum([...auditOutcomes])),
  ...PageQuerySchema.properties,
})

export const AuditEntrySchema = Type.Object({
  id: Type.String(),
  at: Time,
  node: Type.String(),
  principal: Type.String(),
  keyId: Nullable(Type.String({ description: 'Null: no API key' })),
  address: Nullable(Type.String({ description: 'Of the client, as the node sees it' })),
  verb: Type.String(),
  target: Type.String(),
  outcome: Type.Enum([...auditOutcomes]),
  requestId: Nullable(Type.String()),
  detail: Type.Record(Type.String(), Type.Unknown()),
})
export type AuditEntryAnswer = Static<typeof AuditEntrySchema>

export const AuditAnswerSchema = Type.Object({
  entries: Type.Array(AuditEntrySchema, { description: 'Newest first' }),
  cursor: Cursor(),
})
export type AuditAnswer = Static<typeof AuditAnswerSchema>
