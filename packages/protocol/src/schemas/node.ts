// Responses that describe a node.
import { Type } from '../typebox.ts'
import { Nullable } from './name.ts'

export const WelcomeAnswerSchema = Type.Object({
  name: Type.Literal('rouse'),
  version: Type.String(),
  node: Type.String(),
  links: Type.Record(Type.String(), Type.String(), { description: 'Paths, by what they show' }),
})

export const LiveAnswerSchema = Type.Object({ status: Type.Literal('live'), node: Type.String() })

export const ReadyAnswerSchema = Type.Object({ status: Type.Literal('ready'), node: Type.String() })

export const OpenApiAnswerSchema = Type.Object({
  openapi: Type.Literal('3.1.0'),
  info: Type.Record(Type.String(), Type.Unknown()),
  paths: Type.Record(Type.String(), Type.Unknown()),
  components: Type.Record(Type.String(), Type.Unknown()),
})

export const NodesAnswerSchema = Type.Object({
  nodes: Type.Array(
    Type.Object(
      {
        id: Type.String(),
        self: Type.Boolean({ description: 'The node that answers' }),
        state: Type.Enum(['alive', 'suspect', 'dead', 'left']),
        url: Type.Optional(Nullable(Type.String())),
        version: Type.Optional(Nullable(Type.String())),
        gossip: Type.Optional(Nullable(Type.String({ description: 'Its UDP address' }))),
        uptime: Type.Optional(Type.Number()),
        workers: Type.Optional(Type.Unknown()),
        mode: Type.Optional(Type.Enum(['healthy', 'aggressive'])),
      },
      { additionalProperties: true },
    ),
  ),
})
