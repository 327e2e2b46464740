export type { Coordinator, Grant } from './coordinator.ts'
export type { EndOutcome } from './ends/end-waits.ts'
export type { Delivery, SidecarObserver } from './observer.ts'
export type {
  AckOutcome,
  LeaveSignal,
  Operation,
  OperationKind,
  OperationResults,
  PopResponse,
  PopSpec,
} from './operation.ts'
export type { SidecarOptions, SidecarStats } from './sidecar-db-pool.ts'
export { SidecarDbPool, sidecarConnections, sidecarDefaults } from './sidecar-db-pool.ts'
export type { SidecarErrorCode } from './sidecar-error.ts'
export { SidecarError } from './sidecar-error.ts'
export { WriteQueue } from './writes/write-queue.ts'
