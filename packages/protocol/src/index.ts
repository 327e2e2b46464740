export { allFaults, readEach, readFields } from './all-faults.ts'
export { answers, otherAnswers, textAnswers } from './api/answers.ts'
export type { Endpoint, Need, Needs, RequestSchema, Target, Verb } from './api/endpoint.ts'
export { verbs } from './api/endpoint.ts'
export { endpoints } from './api/endpoints.ts'
export type { Example } from './api/examples.ts'
export { exampleParams, examples } from './api/examples.ts'
export { openApi } from './api/openapi.ts'
export { closed } from './api/request-schema.ts'
export type { ErrorCode, ErrorKind } from './error-registry.ts'
export { errorKind, errorRegistry, isErrorCode } from './error-registry.ts'
export type { FieldError, Problem, RouseErrorOptions } from './errors.ts'
export {
  fieldError,
  fieldErrors,
  fieldErrorsMax,
  RouseError,
  toProblem,
  unknownField,
} from './errors.ts'
export type { LeasedMessageName, LeaseToken } from './lease-token.ts'
export {
  decodeLeaseToken,
  encodeLeaseToken,
  hashTransactionId,
  isLeaseUuid,
  isPartitionId,
  leaseTokens,
  leaseUuidOf,
  matchesTransaction,
} from './lease-token.ts'
export type { Limits } from './limits.ts'
export { limits, requestDefaults } from './limits.ts'
export type { MessagePlace, UuidV7Options } from './message-id.ts'
export {
  createMessageIds,
  createUuidV7,
  isSampled,
  isSampledPlace,
  isUuid,
  messageIdAt,
  namesPlace,
  placeOfMessageId,
  pushedAtOf,
  pushTime,
  sampledOneOf,
  seqOfTransactionId,
  timeOfMessageId,
  transactionIdFor,
  withoutPlace,
  withPlace,
} from './message-id.ts'
export {
  parseConsumer,
  parseConsumerGroup,
  parseNamespace,
  parsePartitionName,
  parseQueueName,
  parseTask,
  parseTransactionId,
  partitionOfPriority,
  shownGroup,
  shownPartition,
} from './names.ts'
export type { PopOptions } from './pop-options.ts'
export { readPopBody, readPopQuery } from './pop-options.ts'
export type { Range } from './query-values.ts'
export { parseBoolean, parseChoice, parseDecimal, parseTime } from './query-values.ts'
export type {
  Ack,
  AckAnswer,
  AckBatchBody,
  AckBody,
  AckByIds,
  AckByReceipt,
  AckLeaseBody,
  AckListBody,
  AckResult,
} from './schemas/ack.ts'
export {
  AckAnswerSchema,
  AckBatchBodySchema,
  AckBodySchema,
  AckByIdsSchema,
  AckByReceiptSchema,
  AckLeaseBodySchema,
  AckListBodySchema,
  AckResultSchema,
  AckSchema,
  ackStatuses,
} from './schemas/ack.ts'
export type { AuditAnswer, AuditEntryAnswer } from './schemas/audit.ts'
export {
  AuditAnswerSchema,
  AuditEntrySchema,
  AuditQuerySchema,
  auditOutcomes,
} from './schemas/audit.ts'
export type {
  CheckedOptionsAnswer,
  ConfigureAnswer,
  ConfigureBody,
  QueueSettingsBody,
} from './schemas/configure.ts'
export {
  ConfigureAnswerSchema,
  ConfigureBodySchema,
  QueueOptionsSchema,
  QueueSettingsBodySchema,
} from './schemas/configure.ts'
export type {
  Attempt,
  DeadLetter,
  DeadLetterGroupsAnswer,
  DeadLettersAnswer,
  DeadLettersQuery,
  FailedAttempt,
  PurgedLettersAnswer,
  Redrive,
  RedriveBody,
  RedrivePlan,
} from './schemas/dead-letters.ts'
export {
  AttemptSchema,
  DeadLetterGroupsAnswerSchema,
  DeadLetterSchema,
  DeadLettersAnswerSchema,
  DeadLettersQuerySchema,
  FailedAttemptSchema,
  PurgedLettersAnswerSchema,
  RedriveBodySchema,
  RedrivePlanSchema,
  RedriveSchema,
} from './schemas/dead-letters.ts'
export type {
  Group,
  GroupFigures,
  GroupFiguresAnswer,
  GroupSubscriptionBody,
  GroupsAnswer,
  SeekBody,
  SubscriptionBody,
} from './schemas/groups.ts'
export {
  GroupFiguresAnswerSchema,
  GroupFiguresSchema,
  GroupSchema,
  GroupSubscriptionBodySchema,
  GroupsAnswerSchema,
  SeekBodySchema,
  SubscriptionBodySchema,
} from './schemas/groups.ts'
export type {
  Key,
  KeyBody,
  KeyLimits,
  KeysAnswer,
  NewKeyAnswer,
  RevokedKeyAnswer,
  RotateKeyBody,
  SessionAnswer,
  SessionBody,
} from './schemas/keys.ts'
export {
  csrfHeader,
  KeyBodySchema,
  KeyLimitsSchema,
  KeySchema,
  KeysAnswerSchema,
  keyPresets,
  NewKeyAnswerSchema,
  RevokedKeyAnswerSchema,
  RotateKeyBodySchema,
  SessionAnswerSchema,
  SessionBodySchema,
} from './schemas/keys.ts'
export type { ExtendAnswer, ExtendBody, ReleaseAnswer } from './schemas/lease.ts'
export { ExtendAnswerSchema, ExtendBodySchema, ReleaseAnswerSchema } from './schemas/lease.ts'
export type {
  CancelManyAnswer,
  CancelQuery,
  MessageAnswer,
  MessageByIdAnswer,
  MessageByIdQuery,
  MessageState,
  MessagesAnswer,
  MessagesQuery,
  ProgressAnswer,
  ProgressBody,
} from './schemas/messages.ts'
export {
  CancelAnswerSchema,
  CancelManyAnswerSchema,
  CancelQuerySchema,
  MessageAnswerSchema,
  MessageByIdAnswerSchema,
  MessageByIdQuerySchema,
  MessagesAnswerSchema,
  MessagesQuerySchema,
  messageStates,
  messageStatusAliases,
  messageStatuses,
  ProgressAnswerSchema,
  ProgressBodySchema,
  RunNowAnswerSchema,
} from './schemas/messages.ts'
export { Name, Nullable, Time } from './schemas/name.ts'
export {
  type MessageCause,
  type MessageWhyAnswer,
  MessageWhyAnswerSchema,
  messageCauses,
} from './schemas/observe/message-why.ts'
export type { SeriesAnswer } from './schemas/observe/series.ts'
export type {
  GroupBackoff,
  Latency,
  Mode,
  StatsAnswer,
  WakeLatency,
  Wakes,
} from './schemas/observe/stats.ts'
export {
  GroupBackoffSchema,
  LatencySchema,
  ModeSchema,
  StatsAnswerSchema,
  WakeLatencySchema,
  WakesSchema,
} from './schemas/observe/stats.ts'
export type { WhyAnswer, WhyQuery, WhyReason } from './schemas/observe/why.ts'
export { WhyAnswerSchema, WhyQuerySchema, whyCodes } from './schemas/observe/why.ts'
export type { PopAnswer, PopBody, PoppedMessage, PopQuery } from './schemas/pop.ts'
export {
  PopAnswerSchema,
  PopBodySchema,
  PoppedMessageSchema,
  PopQuerySchema,
  subscriptionModes,
} from './schemas/pop.ts'
export type { ProblemBody } from './schemas/problem.ts'
export { ProblemSchema } from './schemas/problem.ts'
export type { PushAnswer, PushBody, PushedItem, PushItem } from './schemas/push.ts'
export {
  PushAnswerSchema,
  PushBodySchema,
  PushedItemSchema,
  PushItemSchema,
} from './schemas/push.ts'
export type {
  DeletedAnswer,
  PausedAnswer,
  PurgedAnswer,
  Queue,
  QueueFigures,
  QueueFiguresAnswer,
  QueuesAnswer,
} from './schemas/queues.ts'
export {
  DeletedAnswerSchema,
  PausedAnswerSchema,
  PurgedAnswerSchema,
  QueueFiguresAnswerSchema,
  QueueFiguresSchema,
  QueueSchema,
  QueuesAnswerSchema,
  queueStates,
} from './schemas/queues.ts'
export type { Schedule, ScheduleBody, SchedulesAnswer } from './schemas/schedules.ts'
export {
  catchUps,
  ScheduleBodySchema,
  ScheduleSchema,
  SchedulesAnswerSchema,
} from './schemas/schedules.ts'
export type {
  TraceAnswer,
  TraceBody,
  TraceEvent,
  TraceNamesAnswer,
  TracesAnswer,
} from './schemas/traces.ts'
export {
  TraceAnswerSchema,
  TraceBodySchema,
  TraceEventSchema,
  TraceNamesAnswerSchema,
  TracesAnswerSchema,
} from './schemas/traces.ts'
export type {
  TransactionAck,
  TransactionAckByIds,
  TransactionAnswer,
  TransactionBody,
  TransactionPush,
  TransactionResult,
} from './schemas/transaction.ts'
export {
  TransactionAckSchema,
  TransactionAnswerSchema,
  TransactionBodySchema,
  TransactionPushSchema,
  TransactionResultSchema,
} from './schemas/transaction.ts'
export { editDistance, suggest } from './suggestions.ts'
export type { GrantOutcome, PopSource, WaitGroup, WakeHint } from './wait-group.ts'
export { completionGroup, isCompletionGroup } from './wait-group.ts'
