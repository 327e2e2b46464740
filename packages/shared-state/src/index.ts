export type { GroupDescription, GroupKey, Hint } from './group-key.ts'
export { groupKey, sharedSelector } from './group-key.ts'
export type { LatencyStats } from './latency-histogram.ts'
export type { Fault, MomentaryFault, StandingFault } from './poll-mode.ts'
export type {
  GrantSource,
  PopOutcome,
  SharedStatePorts,
  SidecarId,
  WakeSource,
} from './ports.ts'
export type { SharedStateSettings } from './settings.ts'
export { sharedStateDefaults } from './settings.ts'
export type { Origin } from './shared-state-manager.ts'
export { SharedStateManager } from './shared-state-manager.ts'
export type { GroupStats, SharedStateStats } from './stats.ts'
