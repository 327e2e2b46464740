import { type Static, Type } from '../typebox.ts'
import { Cursor, Name, Nullable, Time } from './name.ts'

/** Which missed ticks are pushed later. Ticks are missed while no node runs. */
export const catchUps = ['none', 'last', 'all'] as const

export const ScheduleBodySchema = Type.Object({
  name: Name('Replaces the schedule with this name'),
  queue: Name(),
  partition: Type.Optional(Name()),
  cron: Type.String({
    minLength: 1,
    maxLength: 255,
    description: 'Five fields, six with seconds in front, or a nickname such as @daily',
  }),
  timeZone: Type.Optional(Type.String({ maxLength: 100, default: 'UTC' })),
  payload: Type.Optional(Type.Unknown({ description: 'Any JSON value; null by default' })),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        'In addition to `schedule` and `scheduledAt`, which every message of a schedule has',
    }),
  ),
  catchUp: Type.Optional(Type.Enum(catchUps, { default: 'last' })),
  paused: Type.Optional(Type.Boolean({ default: false })),
})
export type ScheduleBody = Static<typeof ScheduleBodySchema>

const { name: _name, ...settings } = ScheduleBodySchema.properties

/** The body of `PUT`: the path has the name. */
export const ScheduleSettingsBodySchema = Type.Object(settings)

export const ScheduleSchema = Type.Object({
  name: Type.String(),
  queue: Type.String(),
  partition: Nullable(Type.String()),
  cron: Type.String(),
  timeZone: Type.String(),
  payload: Type.Unknown(),
  headers: Nullable(Type.Record(Type.String(), Type.Unknown())),
  catchUp: Type.Enum(catchUps),
  paused: Type.Boolean(),
  nextAt: Nullable(Time),
  lastAt: Nullable(Time),
  createdAt: Time,
  undecrypted: Type.Optional(
    Type.Literal(true, {
      description: 'The payload is encrypted, and this node does not have the key',
    }),
  ),
})
export type Schedule = Static<typeof ScheduleSchema>

export const SchedulesAnswerSchema = Type.Object({
  schedules: Type.Array(ScheduleSchema),
  cursor: Cursor(),
})
export type SchedulesAnswer = Static<typeof SchedulesAnswerSchema>
