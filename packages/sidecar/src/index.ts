export type { Coordinator, Grant, GrantOutcome, GroupDescription } from './coordinator.ts'
export type {
  AckOutcome,
  LeaveSignal,
  Operation,
  OperationKind,
  OperationResults,
  PopOutcome,
  PopSpec,
} from './operation.ts'
export { poolExecutor } from './pool-executor.ts'
export type { SidecarOptions, SidecarStats } from './sidecar-db-pool.ts'
export { SidecarDbPool, sidecarConnections, sidecarDefaults } from './sidecar-db-pool.ts'
export type { SidecarErrorCode } from './sidecar-error.ts'
export { SidecarError } from './sidecar-error.ts'
export type { AckItem, AckResult, AckStatus } from './statements/ack.ts'
export { ack } from './statements/ack.ts'
export type {
  DeadLetter,
  DeadLetterFilter,
  FailedAttempt,
  RedriveRequest,
} from './statements/dead-letters.ts'
export { deadLetters, redrive } from './statements/dead-letters.ts'
export type { Connections, Executor, Statement } from './statements/executor.ts'
export { withoutPreparing } from './statements/executor.ts'
export { deleteGroup, seek } from './statements/groups.ts'
export { extend, release } from './statements/lease.ts'
export type { Retained, RetainOptions } from './statements/maintenance.ts'
export {
  type PartitionName,
  promoteDue,
  promotePartition,
  promoteReady,
  promoteScheduled,
  reapExpired,
  reapStep,
  retain,
  retainDefaults,
} from './statements/maintenance.ts'
export type {
  Lease,
  LeasedMessage,
  PopDemand,
  PopRequest,
  PopResult,
  PopSource,
  PopStatus,
} from './statements/pop.ts'
export { pop } from './statements/pop.ts'
export type { PushedItem, PushItem, PushResult } from './statements/push.ts'
export { push } from './statements/push.ts'
export type { ConfiguredQueue, ConfigureRequest } from './statements/queues.ts'
export { configure, deleteQueue, pause, purge } from './statements/queues.ts'
export type { EnqueueRequest } from './statements/sql-producers.ts'
export { ackIn, enqueue } from './statements/sql-producers.ts'
export type { GroupStats, QueueStats } from './statements/stats.ts'
export { stats, statsPage } from './statements/stats.ts'
export type { TransactionRequest, TransactionResult } from './statements/transaction.ts'
export { transaction } from './statements/transaction.ts'
export type { Woken } from './statements/woken.ts'
export { WriteLine } from './write-line.ts'
