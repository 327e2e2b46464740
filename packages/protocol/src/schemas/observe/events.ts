import { Type } from '../../typebox.ts'

export const EventsQuerySchema = Type.Object({
  queues: Type.Optional(
    Type.String({ description: 'Names, or prefixes that end in `*`, separated by commas' }),
  ),
  wakes: Type.Optional(Type.Boolean({ description: 'Also how waiting pops are woken' })),
  groups: Type.Optional(Type.Boolean({ description: 'Also the backoff of wait groups' })),
  scope: Type.Optional(Type.Enum(['node', 'cluster'], { default: 'cluster' })),
  once: Type.Optional(Type.Boolean({ description: 'Ends after the first `rates`' })),
  lastEventId: Type.Optional(
    Type.String({ description: 'Repeats what happened since; also as the header Last-Event-ID' }),
  ),
})
