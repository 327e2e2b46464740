export type { PopOptions } from './consume/consumer.ts'
export { Consumer } from './consume/consumer.ts'
export type { BatchContext, BatchHandler, Context, Handler } from './consume/context.ts'
export { Discard, RetryIn } from './consume/ending-errors.ts'
export type { Message } from './consume/message.ts'
export { traceparentOf } from './consume/message.ts'
export type { MessageStream, StreamedMessage } from './consume/message-stream.ts'
export type { BatchOptions, ErrorAbout, WorkOptions } from './consume/work-options.ts'
export { Worker } from './consume/worker.ts'
export type { WorkerEvents } from './consume/worker-events.ts'
export type { Duration } from './duration.ts'
export type { Token } from './http/caller.ts'
export type { Transport, TransportAnswer, TransportRequest } from './http/transport.ts'
export { TransportError } from './http/transport.ts'
export type { Acked, Delivered, Instrument, Operation } from './instrument.ts'
export type { Logger } from './logging.ts'
export { PartialPushError } from './push/partial-push-error.ts'
export type { Pushed } from './push/push-buffer.ts'
export type { PushCallOptions, PushEntry, PushOptions, PushTo, Unique } from './push/push-item.ts'
export type { PushManyOptions } from './queue.ts'
export { Queue } from './queue.ts'
export type {
  DeadLetter,
  DeadLetterErrors,
  DeadLetterFilter,
  DeadLetters,
  FailedAttempt,
  Redrive,
  RedriveOptions,
} from './resources/dead-letters.ts'
export type { GroupInfo, Groups } from './resources/groups.ts'
export type { CallOptions } from './resources/list.ts'
export type {
  Cancelled,
  MessageFilter,
  MessageGroup,
  MessageInfo,
  MessageState,
  Messages,
  StoredMessage,
  WaitOptions,
} from './resources/messages.ts'
export type { ExponentialBackoff, QueueOptions, RateLimit } from './resources/queue-options.ts'
export { exponential } from './resources/queue-options.ts'
export type { QueueFilter, QueueInfo, WhyReason } from './resources/queues.ts'
export type { Schedule, ScheduleOf, ScheduleSettings, Schedules } from './resources/schedules.ts'
export type { RouseOptions } from './rouse.ts'
export { Rouse } from './rouse.ts'
export type { ClientErrorCode, ErrorCode, FieldError } from './rouse-error.ts'
export { isRouseError, RouseError } from './rouse-error.ts'
export type { StandardIssue, StandardResult, StandardSchema } from './schema.ts'
export type { SqlExecutor } from './sql/executor.ts'
export type { EnqueueEntry, PushedIn } from './sql/push-in.ts'
