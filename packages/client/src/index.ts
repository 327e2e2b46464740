export type { PopOptions } from './consume/consumer.ts'
export { Consumer } from './consume/consumer.ts'
export type {
  BatchContext,
  BatchHandler,
  Context,
  Handler,
  SqlExecutor,
} from './consume/context.ts'
export type { Message } from './consume/message.ts'
export { traceparentOf } from './consume/message.ts'
export type { MessageStream, StreamedMessage } from './consume/message-stream.ts'
export type { BatchOptions, ErrorAbout, WorkOptions } from './consume/work-options.ts'
export { Worker } from './consume/worker.ts'
export type { Duration } from './duration.ts'
export type { Token } from './http/caller.ts'
export type { Transport, TransportAnswer, TransportRequest } from './http/transport.ts'
export { TransportError } from './http/transport.ts'
export { PartialPushError } from './push/partial-push-error.ts'
export type { Pushed } from './push/push-buffer.ts'
export type { PushEntry, PushOptions, PushTo } from './push/push-item.ts'
export type { PushManyOptions } from './queue.ts'
export { Queue } from './queue.ts'
export type { RouseOptions } from './rouse.ts'
export { Rouse } from './rouse.ts'
export type { ClientErrorCode, ErrorCode, FieldError } from './rouse-error.ts'
export { isRouseError, RouseError } from './rouse-error.ts'
