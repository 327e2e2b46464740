import { type Static, Type } from '../../typebox.ts'
import { Name, Nullable, Time } from '../name.ts'

export const SeriesQuerySchema = Type.Object({
  queue: Type.Optional(Name('Absent: all queues together')),
  resolution: Type.Optional(Type.Enum(['second', 'minute'], { default: 'second' })),
  from: Type.Optional(Type.String({ description: 'A time; by default everything that is kept' })),
  to: Type.Optional(Type.String({ description: 'A time; by default now' })),
  scope: Type.Optional(Type.Enum(['node', 'cluster'], { default: 'cluster' })),
})

const values = (description: string) => Type.Array(Nullable(Type.Integer()), { description })

export const SeriesAnswerSchema = Type.Object({
  queue: Nullable(Type.String()),
  scope: Type.Enum(['node', 'cluster']),
  resolution: Type.Enum(['second', 'minute']),
  stepMs: Type.Integer(),
  from: Time,
  pushed: values('Messages that entered the queue, by step; null: not known'),
  completed: values('Messages that were completed, by step; null: not known'),
  nodes: Type.Array(Type.Integer(), { description: 'How many nodes know the step' }),
  unreachable: Type.Array(
    Type.Object({ id: Type.String(), error: Type.String() }, { description: 'Nodes left out' }),
  ),
})
export type SeriesAnswer = Static<typeof SeriesAnswerSchema>
