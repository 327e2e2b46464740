// Responses of routes that only existing clients use, in the shapes that they read.
import { Type } from '../typebox.ts'
import { Nullable, Time } from './name.ts'

const sumFields = {
  queues: Type.Integer(),
  partitions: Type.Integer(),
  messages: Type.Object({
    total: Type.Integer(),
    pending: Type.Integer(),
    processing: Type.Integer(),
    deadLetter: Type.Integer(),
    scheduled: Type.Integer(),
  }),
}

export const NamespacesAnswerSchema = Type.Object({
  namespaces: Type.Array(Type.Object({ namespace: Type.String(), ...sumFields })),
})

export const TasksAnswerSchema = Type.Object({
  tasks: Type.Array(Type.Object({ task: Type.String(), ...sumFields })),
})

export const OverviewAnswerSchema = Type.Object({
  ...sumFields,
  namespaces: Type.Integer(),
  tasks: Type.Integer(),
  timestamp: Time,
})

export const LaggingAnswerSchema = Type.Array(
  Type.Object({
    consumer_group: Type.String(),
    queue_name: Type.String(),
    partition_name: Nullable(Type.String()),
    partition_id: Type.String(),
    worker_id: Type.Null(),
    offset_lag: Type.Integer(),
    time_lag_seconds: Type.Integer(),
    lag_hours: Type.Number(),
    oldest_unconsumed_at: Nullable(Time),
    last_consumed_at: Time,
  }),
)

/** By queue. */
export const GroupPartitionsAnswerSchema = Type.Record(
  Type.String(),
  Type.Object({
    partitions: Type.Array(
      Type.Object({
        partition: Nullable(Type.String()),
        partitionId: Type.String(),
        workerId: Type.Null(),
        lastConsumedAt: Time,
        offsetLag: Type.Integer(),
        timeLagSeconds: Type.Integer(),
        leaseActive: Type.Boolean(),
      }),
    ),
  }),
)

export const DeletedLettersAnswerSchema = Type.Object({
  success: Type.Literal(true),
  deleted: Type.Integer({ description: 'Dead letters' }),
  partitionId: Type.String(),
  transactionId: Type.String(),
})
