import { type Static, Type } from '../typebox.ts'
import { Name, NameOrEmpty } from './name.ts'

const option = (description: string) => Type.Optional(Type.Unknown({ description }))

/**
 * Only `rouse.check_options` decides which options exist and which values are valid: the names here are for
 * the documentation and for suggestions.
 */
export const QueueOptionsSchema = Type.Object(
  {
    leaseTime: option('Seconds that a consumer has for its messages'),
    retryLimit: option('How often a failed message is delivered again'),
    retryBackoffMs: option('A list: the delay before each retry; the last one repeats'),
    retryDelay: option('One delay before every retry, in ms; retryBackoffMs replaces it'),
    retryBackoff: option(
      '{ type: exponential, baseMs, factor, maxMs, jitter }: growing delays, instead of retryBackoffMs',
    ),
    deadLetterQueue: option('Whether a message that failed too often is kept as a dead letter'),
    dlqAfterMaxRetries: option('An older name of deadLetterQueue; true of either wins'),
    deadLetterTo: option('The queue to which messages that are given up are moved'),
    ordering: option('keyed, partition or none: which messages keep their order'),
    onFailure: option('hold or skip: whether a failed message delays its partition'),
    delayedProcessing: option('Seconds before a message is delivered'),
    windowBuffer: option('Seconds without a push before a partition is delivered'),
    ttl: option('Seconds after which a message is no longer delivered; 0: never'),
    retentionEnabled: option('Whether messages are removed'),
    retentionSeconds: option('Seconds after which a message is removed'),
    completedRetentionSeconds: option('Seconds for which a completed message is kept'),
    maxWaitTimeSeconds: option('Seconds after which a message that waits is removed'),
    maxSize: option('The largest number of messages; 0: no limit'),
    priority: option('Of the queue, in a pop from several queues; higher first'),
    maxInFlight: option('The largest number of leased messages per consumer group; 0: no limit'),
    maxInFlightPerPartition: option(
      'The largest number of leased messages per consumer group and partition; 0: no limit',
    ),
    rate: option('{ limit, perMs }: the deliveries per consumer group in this time'),
    partitionRate: option('{ limit, perMs }: the deliveries per consumer group and partition'),
    dedupWindowSeconds: option('Seconds for which a transactionId is remembered'),
    history: option('failures or all: which attempts at a message are recorded'),
    encryptionEnabled: option('Whether payloads are stored encrypted'),
  },
  {
    additionalProperties: true,
    description: 'Merged into the current options; null resets an option to its default',
  },
)

export const ConfigureBodySchema = Type.Object({
  queue: Name(),
  namespace: Type.Optional(NameOrEmpty()),
  task: Type.Optional(NameOrEmpty()),
  options: Type.Optional(QueueOptionsSchema),
  dryRun: Type.Optional(
    Type.Boolean({ description: 'Checks names and values of options, and changes nothing' }),
  ),
})
export type ConfigureBody = Static<typeof ConfigureBodySchema>

/** The body of `PUT` and `PATCH` of a queue. */
export const QueueSettingsBodySchema = Type.Object({
  namespace: ConfigureBodySchema.properties.namespace,
  task: ConfigureBodySchema.properties.task,
  options: ConfigureBodySchema.properties.options,
})
export type QueueSettingsBody = Static<typeof QueueSettingsBodySchema>

export const ConfigureAnswerSchema = Type.Object({
  configured: Type.Literal(true),
  queueId: Type.Integer(),
  options: Type.Record(Type.String(), Type.Unknown()),
})
export type ConfigureAnswer = Static<typeof ConfigureAnswerSchema>

/** The response to a dry run. */
const CheckedOptionsAnswerSchema = Type.Object({
  configured: Type.Literal(false),
  dryRun: Type.Literal(true),
})
export type CheckedOptionsAnswer = Static<typeof CheckedOptionsAnswerSchema>
