import { limits, requestDefaults } from '../limits.ts'
import { type Static, Type } from '../typebox.ts'
import { Time } from './name.ts'

export const ExtendBodySchema = Type.Object({
  seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.leaseSecondsMax,
      default: requestDefaults.extendSeconds,
    }),
  ),
  exact: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'The lease may become shorter, too. It must hold one message only',
    }),
  ),
})
export type ExtendBody = Static<typeof ExtendBodySchema>

export const ExtendAnswerSchema = Type.Object({
  leaseId: Type.String(),
  expiresAt: Time,
  newExpiresAt: Type.String({
    format: 'date-time',
    description: 'Repeats expiresAt for existing clients',
  }),
  remainingMs: Type.Integer({
    minimum: 0,
    description:
      'From now to expiresAt. Less than asked for while a transaction with rouse.ack_in is open',
  }),
  success: Type.Literal(true),
})
export type ExtendAnswer = Static<typeof ExtendAnswerSchema>

export const ReleaseAnswerSchema = Type.Object({
  leaseId: Type.String(),
  success: Type.Literal(true),
})
export type ReleaseAnswer = Static<typeof ReleaseAnswerSchema>
