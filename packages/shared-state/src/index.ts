export { groupKey, sharedSelector } from './group-table.ts'
export type { Fault, MomentaryFault, StandingFault } from './poll-mode.ts'
export type {
  GrantSource,
  GroupKey,
  SharedStatePorts,
  SidecarId,
  WakeSource,
} from './ports.ts'
export type { SharedStateSettings } from './settings.ts'
export { sharedStateDefaults } from './settings.ts'
export type { Origin } from './shared-state-manager.ts'
export { SharedStateManager } from './shared-state-manager.ts'
export type { GroupStats, LatencyStats, SharedStateStats } from './stats.ts'
