import { type Static, Type } from 'typebox'
import { Name } from './name.ts'

/** Which options there are and what they may be is known to `rouse.check_options` alone. */
export const ConfigureBodySchema = Type.Object({
  queue: Name(),
  namespace: Type.Optional(Name()),
  task: Type.Optional(Name()),
  options: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Merged into what is set; null takes an option back to its default',
    }),
  ),
})
export type ConfigureBody = Static<typeof ConfigureBodySchema>

export const ConfigureAnswerSchema = Type.Object({
  configured: Type.Literal(true),
  queueId: Type.Integer(),
  options: Type.Record(Type.String(), Type.Unknown()),
})
export type ConfigureAnswer = Static<typeof ConfigureAnswerSchema>
