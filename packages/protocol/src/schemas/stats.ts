import { type Static, Type } from 'typebox'
import { Time } from './name.ts'

export const GroupBackoffSchema = Type.Object({
  groups_tracked: Type.Integer(),
  groups_in_flight: Type.Integer(),
  groups_backed_off: Type.Integer(),
  groups: Type.Array(
    Type.Object({
      key: Type.String(),
      intervalMs: Type.Number(),
      consecutiveEmpty: Type.Integer(),
      inFlight: Type.Boolean(),
      waiting: Type.Integer(),
      nextCheckInMs: Type.Number(),
    }),
  ),
})
export type GroupBackoff = Static<typeof GroupBackoffSchema>

export const WakesSchema = Type.Object({
  local: Type.Integer(),
  ipc: Type.Integer(),
  udp: Type.Integer(),
  notify: Type.Integer(),
  timer: Type.Integer(),
  chain: Type.Integer(),
  fallback: Type.Integer(),
})
export type Wakes = Static<typeof WakesSchema>

export const ModeSchema = Type.Object({
  mode: Type.Enum(['healthy', 'aggressive']),
  since: Time,
  why: Type.Array(Type.String()),
})
export type Mode = Static<typeof ModeSchema>

/** What `/stats` always has; a node adds figures of its own beside these. */
export const StatsAnswerSchema = Type.Object({
  node: Type.String(),
  uptime: Type.Number(),
  workers: Type.Integer(),
  local_sidecars: Type.Integer(),
  group_backoff: GroupBackoffSchema,
  wakes: WakesSchema,
  mode: ModeSchema,
})
export type StatsAnswer = Static<typeof StatsAnswerSchema>
