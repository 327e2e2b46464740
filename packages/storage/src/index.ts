export type { AuditEntry, AuditFilter, AuditRow } from './auth/audit.ts'
export { pruneAudit, readAudit, writeAudit } from './auth/audit.ts'
export type { KeyRow, KeyTable, LiveKey, NewKey } from './auth/keys.ts'
export {
  createKey,
  findKey,
  listKeys,
  markKeysUsed,
  readKeyTable,
  revokeKey,
} from './auth/keys.ts'
export type { AckedBatch, AckItem, AckStatus } from './delivery/ack.ts'
export { ack } from './delivery/ack.ts'
export type { HeldName } from './delivery/find-held.ts'
export { findHeld } from './delivery/find-held.ts'
export type { HeldMessage, Holdings, MessageName } from './delivery/holdings.ts'
export { holdingsOf } from './delivery/holdings.ts'
export type { Extended, Extension } from './delivery/lease.ts'
export { extend, release, renew } from './delivery/lease.ts'
export type { Lease, LeasedMessage, PopDemand, PopRequest, PopResult } from './delivery/pop.ts'
export { pop, popBytesMaxDefault } from './delivery/pop.ts'
export type { ProgressReport } from './delivery/progress.ts'
export { reportProgress } from './delivery/progress.ts'
export type {
  MessageOptions,
  NewMessage,
  PushedMessage,
  PushResult,
  UniqueKey,
} from './delivery/push.ts'
export { push, targetPartition } from './delivery/push.ts'
export type { DirectDemand, DirectPushResult } from './delivery/push-direct.ts'
export { canPushDirectly, pushDirect } from './delivery/push-direct.ts'
export { ackIn, enqueue, enqueueMany } from './delivery/sql-producers.ts'
export type { CommittedTransaction, TransactionRequest } from './delivery/transaction.ts'
export { transaction } from './delivery/transaction.ts'
export type { Connections, Executor, Statement } from './executor.ts'
export { countingQueries, poolExecutor, unnamed, withoutPreparing } from './executor.ts'
export type { Cancellation, MessageById, RunNow, TakenKey } from './inspect/by-id.ts'
export { cancelMessage, messageById, runNow, uniqueOf } from './inspect/by-id.ts'
export type { DeadLetterRow, FailedAttemptRow } from './inspect/dead-letters.ts'
export { deadLetters, redrive } from './inspect/dead-letters.ts'
export type { AwaitedGroups, AwaitedMessage } from './inspect/ended.ts'
export { endedMessages, newestGroup } from './inspect/ended.ts'
export type {
  MessageFilter,
  MessageInGroup,
  Moment,
  Place,
  StoredMessage,
} from './inspect/messages.ts'
export {
  findMessage,
  followMessages,
  listMessages,
} from './inspect/messages.ts'
export { type PartitionHold, partitionHolds } from './inspect/partition-holds.ts'
export type { LetterFilter, RedriveRow } from './inspect/redrives.ts'
export {
  cancelRedrive,
  countLetters,
  deadLetterGroups,
  findRedrive,
  purgeLetters,
  redriveStep,
  startRedrive,
} from './inspect/redrives.ts'
export type { NewTrace, TraceFilter, TraceRow } from './inspect/traces.ts'
export {
  addTrace,
  attemptTraces,
  partitionNames,
  traceNames,
  tracesByName,
  tracesOfMessage,
} from './inspect/traces.ts'
export type { GroupFacts, HeldKey, HeldLane, IdleFacts, QueueFacts } from './inspect/why.ts'
export { queueFacts } from './inspect/why.ts'
export type { GroupPosition } from './queues/group-positions.ts'
export {
  groupsAfter,
  laggingPositions,
  positionsOfGroup,
  seekPartition,
} from './queues/group-positions.ts'
export { deleteGroup, seek } from './queues/groups.ts'
export { groupsWithWork } from './queues/groups-with-work.ts'
export type { QueuePlace } from './queues/queue-details.ts'
export {
  isEncrypted,
  queueOptions,
  queuePlace,
  queuesWithGroup,
  subscribe,
} from './queues/queue-details.ts'
export type { QueueFigures } from './queues/queue-figures.ts'
export { createFiguresReader, figuresOf, figuresOfMatching } from './queues/queue-figures.ts'
export { encryptedQueues, forgetfulQueue, queuesOfPartitions } from './queues/queue-lookups.ts'
export type { ConfiguredQueue, ConfigureRequest } from './queues/queues.ts'
export {
  checkOptions,
  configure,
  deleteQueue,
  patchQueue,
  purge,
  replaceQueue,
  setPaused,
} from './queues/queues.ts'
export type { ConsumerGroupStats, QueueFilter, QueueStats } from './queues/stats.ts'
export { stats, statsOfMatching, statsOfNamed, statsPage } from './queues/stats.ts'
export type { AdoptedCopy, CopyState, Original } from './server/copy.ts'
export { adoptCopy, readCopyState } from './server/copy.ts'
export type { DatabaseFigures, TableFigures } from './server/database-figures.ts'
export { databaseFigures } from './server/database-figures.ts'
export type { Pool, RoleSetting } from './server/health.ts'
export {
  isBehindPooler,
  isListenHeard,
  readClockMs,
  readRoleSettings,
  readServerDefaults,
  readSetting,
  readSettingIfAny,
  withoutTimeouts,
} from './server/health.ts'
export type { Login } from './server/login.ts'
export { grantRoles, readLogin, rolesWithoutPrivileges } from './server/login.ts'
export type { ClusterIdentity, NodeExchange, NodeRecord, SeenNode } from './server/nodes.ts'
export { exchangeNodes, joinCluster, removeNode } from './server/nodes.ts'
export type { Readiness } from './server/readiness.ts'
export { ping, readReadiness, serverConnectionsMax } from './server/readiness.ts'
export { writeNotifySetting, writeServerDefaults } from './server/server-defaults.ts'
export type { DueTimes } from './time/due-times.ts'
export { dueTimes } from './time/due-times.ts'
export { beat, listen, scheduledChannel } from './time/listen.ts'
export type { PartitionName, Retained, RetainOptions } from './time/maintenance.ts'
export {
  promoteDue,
  promotePartition,
  promoteReady,
  promoteScheduled,
  reapExpired,
  reapStep,
  retain,
  retainDefaults,
} from './time/maintenance.ts'
export { purgeUnderWay, removalStep } from './time/removals.ts'
export type { IdleGroup } from './time/retention.ts'
export { dueChores, idleGroups, retentionStep, takeLetGoGroups } from './time/retention.ts'
export type { CatchUp, DueSchedule, ScheduleRow, SealedFiring } from './time/schedules.ts'
export {
  databaseNow,
  deleteSchedule,
  dueSchedules,
  findSchedule,
  fireSchedule,
  listSchedules,
  putSchedule,
} from './time/schedules.ts'
