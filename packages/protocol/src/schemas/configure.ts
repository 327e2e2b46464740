import { type Static, Type } from '../typebox.ts'
import { Name, NameOrEmpty } from './name.ts'

/** Only `rouse.check_options` knows the options and their valid values. */
export const ConfigureBodySchema = Type.Object({
  queue: Name(),
  namespace: Type.Optional(NameOrEmpty()),
  task: Type.Optional(NameOrEmpty()),
  options: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Merged into the current options; null resets an option to its default',
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
