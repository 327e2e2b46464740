import { type Static, Type } from '../../typebox.ts'
import { Name } from '../name.ts'

export const whyCodes = [
  'database_down',
  'paused',
  'in_flight_limit',
  'rate_limit',
  'partition_in_flight_limit',
  'partition_rate_limit',
  'held_lane',
  'all_leased',
  'gathering',
  'retry_later',
  'priority',
  'unique_key',
  'expired',
  'no_consumers',
  'ready',
  'in_progress',
  'not_due',
  'size_limit',
  'holds_retention',
  'idle_group',
  'empty',
  'dead_letters',
  'database_copy',
] as const

export const WhyQuerySchema = Type.Object({ consumerGroup: Type.Optional(Name()) })
export type WhyQuery = Static<typeof WhyQuerySchema>

/** Why no message is delivered, as sentences, the most likely reason first. Each reason includes the facts
 * that it is based on. */
export const WhyAnswerSchema = Type.Object({
  queue: Type.String(),
  consumerGroup: Type.Optional(Type.String()),
  reasons: Type.Array(
    Type.Object(
      {
        code: Type.Enum(whyCodes),
        text: Type.String(),
        consumerGroup: Type.Optional(Type.String()),
        action: Type.Optional(Type.String({ description: 'A request to solve the problem' })),
      },
      { additionalProperties: true },
    ),
  ),
})
export type WhyAnswer = Static<typeof WhyAnswerSchema>
export type WhyReason = WhyAnswer['reasons'][number]
