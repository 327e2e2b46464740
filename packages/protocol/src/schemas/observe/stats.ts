import { type Static, Type } from '../../typebox.ts'
import { Nullable, Time } from '../name.ts'

export const StatsQuerySchema = Type.Object({
  scope: Type.Optional(Type.Enum(['node', 'cluster'], { default: 'node' })),
})

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

/** The time from the arrival of a hint at the node to the end of the pop that found messages. Buckets are
 * cumulative. */
export const LatencySchema = Type.Object({
  count: Type.Integer(),
  sumMs: Type.Number(),
  maxMs: Type.Number(),
  buckets: Type.Array(
    Type.Object({ leMs: Type.Union([Type.Number(), Type.Null()]), count: Type.Integer() }),
  ),
})
export type Latency = Static<typeof LatencySchema>

export const WakeLatencySchema = Type.Object({
  local: LatencySchema,
  ipc: LatencySchema,
  udp: LatencySchema,
  notify: LatencySchema,
  timer: LatencySchema,
  chain: LatencySchema,
  fallback: LatencySchema,
})
export type WakeLatency = Static<typeof WakeLatencySchema>

export const ModeSchema = Type.Object({
  mode: Type.Enum(['healthy', 'aggressive']),
  since: Time,
  /** How long ago `since` is. */
  sinceMs: Type.Number(),
  why: Type.Array(Type.String()),
})
export type Mode = Static<typeof ModeSchema>

/** The fields that `/stats` always has; a node adds more. */
export const StatsAnswerSchema = Type.Object(
  {
    node: Type.String(),
    uptime: Type.Number(),
    workers: Type.Integer(),
    access: Type.Optional(
      Type.Enum(['keys', 'loopback', 'insecure'], {
        description: 'Who is served: holders of keys; on loopback everyone; everyone everywhere',
      }),
    ),
    connections_max: Type.Integer({ description: 'To PostgreSQL, from all processes of the node' }),
    local_sidecars: Type.Integer(),
    group_backoff: GroupBackoffSchema,
    wakes: WakesSchema,
    wake_latency: WakeLatencySchema,
    mode: ModeSchema,
    waiting: Type.Object({
      total: Type.Integer(),
      by_worker: Type.Record(Type.String(), Type.Integer()),
      by_queue: Type.Record(Type.String(), Type.Integer()),
    }),
    /** The queues that are in use through this node. */
    queue_rates: Type.Array(
      Type.Object({
        queue: Type.String(),
        pushedPerSecond: Type.Number(),
        deliveredPerSecond: Type.Number(),
        completedPerSecond: Type.Number(),
        failedPerSecond: Type.Number(),
        lastSecond: Type.Object({}, { additionalProperties: true }),
      }),
    ),
    /** The node's ROUSE_DEFAULT_* settings, by option. */
    queue_defaults: Type.Record(Type.String(), Type.Unknown()),
    /** Connections to PostgreSQL, by worker. */
    pool: Type.Record(
      Type.String(),
      Type.Object({
        total: Type.Integer(),
        idle: Type.Integer(),
        queued: Type.Integer(),
        limit: Type.Integer({
          description:
            'Connections the worker may open now; less than max if the server has no room',
        }),
        max: Type.Integer(),
      }),
    ),
    /** How many requests shared how many SQL calls, by kind. */
    batches: Type.Record(
      Type.String(),
      Type.Object({ calls: Type.Integer(), requests: Type.Integer(), mean: Type.Number() }),
    ),
    retention: Type.Object({
      /** Consumer groups that have made no request for a day or longer and still keep messages from being
       * removed. Read once per round of retention. */
      held_by: Type.Array(
        Type.Object({
          queue: Type.String(),
          consumerGroup: Type.String(),
          lastSeenAt: Time,
          messages: Type.Integer(),
          isPartial: Type.Boolean(),
          oldestAt: Nullable(Time),
          until: Nullable(Time),
        }),
      ),
    }),
    queries: Type.Record(Type.String(), Type.Integer()),
    queries_per_second: Type.Record(Type.String(), Type.Number()),
  },
  { additionalProperties: true },
)
export type StatsAnswer = Static<typeof StatsAnswerSchema>
