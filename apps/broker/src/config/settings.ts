// Every setting of a node: its name in the environment, bounds and default. The flag (`--log-level`) and the
// name in a file (`logLevel`) are derived from the environment name, without `ROUSE_`.
import { availableParallelism } from 'node:os'
import { limits } from '@rouse/protocol'
import { sidecarDefaults } from '@rouse/sidecar'
import {
  boolean,
  choice,
  flag,
  integer,
  integers,
  list,
  number,
  type Setting,
  text,
} from './setting.ts'

const MiB = 1024 * 1024
const hourMs = 3_600_000
const yearSeconds = 31_536_000
const centurySeconds = 100 * yearSeconds
const weekMs = 604_800_000

export const settings = {
  /** One server, or several of which one accepts writes: see docs/failover.md. */
  databaseUrl: text('ROUSE_DATABASE_URL', undefined, { secret: true }),
  /** Direct PostgreSQL address for LISTEN, if databaseUrl goes through a pooler. Default: databaseUrl. */
  listenUrl: text('ROUSE_LISTEN_URL', undefined, { secret: true }),
  /** The login that owns the schema, for migrations only. Default: databaseUrl. */
  migrateUrl: text('ROUSE_MIGRATE_URL', undefined, { secret: true }),
  /**
   * One to three comma-separated keys of 32 bytes, in base64 or hex. The first encrypts, all of them decrypt.
   */
  encryptionKey: text('ROUSE_ENCRYPTION_KEY', undefined, { secret: true }),
  /** Serves requests without credentials, on every address. */
  insecure: flag('ROUSE_INSECURE'),
  /** An API key that is stored at the start, with all grants, if there has never been a key. */
  initialAdminKey: text('ROUSE_INITIAL_ADMIN_KEY', undefined, { secret: true }),
  /** Accepts access tokens (JWT) of this OIDC issuer, if they are for this audience. */
  oidcIssuer: text('ROUSE_OIDC_ISSUER', undefined),
  oidcAudience: text('ROUSE_OIDC_AUDIENCE', undefined),
  /** The public client of the dashboard at the issuer. Without it the dashboard signs in with API keys only. */
  oidcClientId: text('ROUSE_OIDC_CLIENT_ID', undefined),
  /** What the dashboard asks the issuer for, as the query of a URL. */
  oidcLogin: text('ROUSE_OIDC_LOGIN', 'scope=openid'),
  /** Further names of the node, which requests without credentials may have in their Host header. */
  allowedHosts: list('ROUSE_ALLOWED_HOSTS'),
  /** Origins whose pages may use the API from a browser. */
  corsOrigins: list('ROUSE_CORS_ORIGINS'),
  /** Files in PEM format: the certificate with its chain, its key, and the CA of clients with certificates. */
  tlsCert: text('ROUSE_TLS_CERT', undefined),
  tlsKey: text('ROUSE_TLS_KEY', undefined),
  tlsClientCa: text('ROUSE_TLS_CLIENT_CA', undefined),
  /** A JSON file: the grants of each name in client certificates. */
  tlsClientGrants: text('ROUSE_TLS_CLIENT_GRANTS', undefined),
  /** A prefix of every path, if a proxy in front does not remove it: `/rouse`. Paths without it work, too. */
  basePath: text<string | undefined>('ROUSE_BASE_PATH', undefined),
  host: text('ROUSE_HOST', '127.0.0.1'),
  port: integer('ROUSE_PORT', 4600, { min: 0, max: 65_535 }),
  workers: integer('ROUSE_WORKERS', Math.max(2, availableParallelism()), { min: 1, max: 256 }),
  /** Default: host name and port. */
  nodeId: text('ROUSE_NODE_ID', undefined),

  gossipHost: text('ROUSE_GOSSIP_HOST', '127.0.0.1'),
  gossipPort: integer('ROUSE_GOSSIP_PORT', 4601, { min: 0, max: 65_535 }),
  gossipPeers: list('ROUSE_GOSSIP_PEERS'),
  /** One to three comma-separated secrets. The first signs, all of them verify. */
  gossipSecret: text('ROUSE_GOSSIP_SECRET', undefined, { secret: true }),
  /** `host[:port]` at which peers reach this node's gossip, if it differs from the bound address. */
  gossipAdvertise: text('ROUSE_GOSSIP_ADVERTISE', undefined),
  gossipPreset: choice('ROUSE_GOSSIP_PRESET', 'lan', ['loopback', 'lan', 'wan']),
  /** URL at which peers and clients reach this node's HTTP, if it differs from the bound address. */
  advertiseUrl: text('ROUSE_ADVERTISE_URL', undefined),

  popWaitBaseIntervalMs: integer('POP_WAIT_BASE_INTERVAL_MS', 100, { min: 1, max: hourMs }),
  popWaitMaxIntervalMs: integer('POP_WAIT_MAX_INTERVAL_MS', 1_000, { min: 1, max: hourMs }),
  popWaitBackoffThreshold: integer('POP_WAIT_BACKOFF_THRESHOLD', 3, { min: 1, max: 1_000 }),
  popWaitBackoffMultiplier: number('POP_WAIT_BACKOFF_MULTIPLIER', 2, { min: 1, max: 100 }),
  popWaitIdleIntervalMs: integer('POP_WAIT_IDLE_INTERVAL_MS', 5_000, { min: 1, max: hourMs }),
  /**
   * How long peers do not get a hint that waiters of this node, or of one other peer, can serve. 0: all get it
   * at once.
   */
  popWaitLocalFirstMs: integer('POP_WAIT_LOCAL_FIRST_MS', 10, { min: 0, max: 10_000 }),
  notifyDeliveryTimeoutMs: integer('NOTIFY_DELIVERY_TIMEOUT_MS', 100, { min: 1, max: 60_000 }),
  aggressivePollDurationMs: integer('AGGRESSIVE_POLL_DURATION_MS', 60_000, { min: 0, max: hourMs }),
  aggressiveExitThreshold: integer('AGGRESSIVE_EXIT_THRESHOLD', 5, { min: 1, max: 1_000 }),

  /** A draining worker still serves for this long, with `connection: close`, so that balancers notice. */
  drainDelayMs: integer('ROUSE_DRAIN_DELAY_MS', 1_000, { min: 0, max: 5_000 }),

  /** Deadline of every request except a waiting pop. Statements already running in PostgreSQL continue. */
  writeTimeoutMs: integer('ROUSE_WRITE_TIMEOUT_MS', sidecarDefaults.timeoutMs, {
    min: 100,
    max: hourMs,
  }),
  waitersMax: integer('ROUSE_WAITERS_MAX', limits.waitersPerWorkerMax, { min: 1, max: 1_000_000 }),
  /**
   * The most database connections of the whole node. By default computed from the number of workers and
   * max_connections (connections.ts).
   */
  connectionsMax: integer<number | undefined>('ROUSE_CONNECTIONS_MAX', undefined, {
    min: 1,
    max: 100_000,
  }),
  /** The most connections per worker. Deprecated in favour of connectionsMax. */
  poolMax: integer<number | undefined>('ROUSE_POOL_MAX', undefined, { min: 2, max: 1_000 }),
  /** Interval between retention runs. */
  retentionIntervalMs: integer('ROUSE_RETENTION_INTERVAL_MS', 60_000, { min: 100, max: weekMs }),
  /** Applies to queues that do not set this option themselves. */
  completedRetentionSeconds: seconds('ROUSE_COMPLETED_RETENTION_SECONDS', 86_400),
  deadLetterRetentionSeconds: seconds('ROUSE_DEAD_LETTER_RETENTION_SECONDS', 1_209_600),
  traceRetentionSeconds: seconds('ROUSE_TRACE_RETENTION_SECONDS', 604_800),
  auditRetentionSeconds: seconds('ROUSE_AUDIT_RETENTION_SECONDS', 7_776_000),
  /** A partition that stays empty this long is removed. The next push creates it again. */
  idlePartitionSeconds: seconds('ROUSE_IDLE_PARTITION_SECONDS', 604_800),
  /** A consumer group without requests for this long no longer delays retention. 0 disables this. */
  idleGroupSeconds: integer('ROUSE_IDLE_GROUP_SECONDS', 1_209_600, {
    min: 0,
    max: centurySeconds,
  }),
  leaseDurability: choice('ROUSE_LEASE_DURABILITY', 'normal', ['normal', 'strict']),
  notify: choice('ROUSE_NOTIFY', 'on', ['on', 'off']),
  /** Whether statements are prepared by name. `auto`: not on a connection through a pooler. */
  prepare: choice('ROUSE_PREPARE', 'auto', ['auto', 'on', 'off']),
  /** Set by systemd for a service of Type=notify. */
  notifySocket: text<string | undefined>('NOTIFY_SOCKET', undefined),
  migrate: choice('ROUSE_MIGRATE', 'auto', ['auto', 'check', 'off']),
  logLevel: choice('ROUSE_LOG_LEVEL', 'info', [
    'trace',
    'debug',
    'info',
    'warn',
    'error',
    'fatal',
    'silent',
  ]),

  /** `auto`: text on a terminal, JSON otherwise. */
  logFormat: choice('ROUSE_LOG_FORMAT', 'auto', ['auto', 'json', 'text']),
  /** Where spans are sent, as OTLP over HTTP in JSON. */
  otlpUrl: text<string | undefined>('ROUSE_OTLP_URL', undefined),
  /** Messages that take longer are recorded for `why`. */
  whySlowMs: integer('ROUSE_WHY_SLOW_MS', 1_000, { min: 1, max: hourMs }),
  /** What nodes record of their work: `counters` leaves out timelines. For measuring what it costs. */
  observation: choice('ROUSE_OBSERVATION', 'on', ['on', 'counters', 'off']),
  /** How many queues have metrics of their own; the others are added up. */
  metricsQueuesMax: integer('ROUSE_METRICS_QUEUES_MAX', 100, { min: 0, max: 1_000 }),

  bodyMaxBytes: integer('ROUSE_BODY_MAX_BYTES', limits.bodyBytesMax, { min: 1024, max: 256 * MiB }),
  pushItemsMax: integer('ROUSE_PUSH_ITEMS_MAX', limits.pushItemsMax, { min: 1, max: 100_000 }),
  payloadMaxBytes: integer('ROUSE_PAYLOAD_MAX_BYTES', limits.payloadBytesMax, {
    min: 1,
    max: 256 * MiB,
  }),
  /**
   * The most bytes of stored payloads and headers in a pop response. The first message is returned whatever
   * its size.
   */
  popMaxBytes: integer('ROUSE_POP_MAX_BYTES', sidecarDefaults.popBytesMax, {
    min: 1,
    max: 256 * MiB,
  }),
  batchMax: integer('ROUSE_BATCH_MAX', limits.batchMax, { min: 1, max: 100_000 }),
  partitionsMax: integer('ROUSE_PARTITIONS_MAX', limits.partitionsMax, { min: 1, max: 1_000 }),
  timeoutMaxMs: integer('ROUSE_TIMEOUT_MAX_MS', limits.popTimeoutMsMax, { min: 0, max: hourMs }),
  acknowledgmentsMax: integer('ROUSE_ACKNOWLEDGMENTS_MAX', limits.acknowledgmentsMax, {
    min: 1,
    max: 100_000,
  }),
  operationsMax: integer('ROUSE_OPERATIONS_MAX', limits.transactionOperationsMax, {
    min: 1,
    max: 100_000,
  }),
  headersMaxBytes: integer('ROUSE_HEADERS_MAX_BYTES', limits.headerBytesMax, {
    min: 1024,
    max: MiB,
  }),
  headersTimeoutMs: integer('ROUSE_HEADERS_TIMEOUT_MS', limits.headersTimeoutMs, {
    min: 100,
    max: 600_000,
  }),
} as const satisfies Record<string, Setting<unknown>>

/** Server-wide defaults for queue options, by their API names. The SQL functions check the same bounds. */
export const queueDefaultSettings = {
  leaseTime: integer('ROUSE_DEFAULT_LEASE_TIME', undefined, { min: 1, max: 86_400 }),
  retryLimit: integer('ROUSE_DEFAULT_RETRY_LIMIT', undefined, { min: 0, max: 1_000 }),
  retryBackoffMs: integers('ROUSE_DEFAULT_RETRY_BACKOFF_MS', { min: 0, max: weekMs }),
  retryDelay: integer('ROUSE_DEFAULT_RETRY_DELAY', undefined, { min: 0, max: weekMs }),
  deadLetterQueue: boolean('ROUSE_DEFAULT_DEAD_LETTER_QUEUE', undefined),
  dlqAfterMaxRetries: boolean('ROUSE_DEFAULT_DLQ_AFTER_MAX_RETRIES', undefined),
  ordering: optional(choice('ROUSE_DEFAULT_ORDERING', 'keyed', ['keyed', 'partition', 'none'])),
  onFailure: optional(choice('ROUSE_DEFAULT_ON_FAILURE', 'hold', ['hold', 'skip'])),
  delayedProcessing: fromZero('ROUSE_DEFAULT_DELAYED_PROCESSING', yearSeconds),
  windowBuffer: fromZero('ROUSE_DEFAULT_WINDOW_BUFFER', 86_400),
  ttl: fromZero('ROUSE_DEFAULT_TTL', centurySeconds),
  retentionEnabled: boolean('ROUSE_DEFAULT_RETENTION_ENABLED', undefined),
  retentionSeconds: fromZero('ROUSE_DEFAULT_RETENTION_SECONDS', centurySeconds),
  completedRetentionSeconds: integer('ROUSE_DEFAULT_COMPLETED_RETENTION_SECONDS', undefined, {
    min: -1,
    max: centurySeconds,
  }),
  maxWaitTimeSeconds: fromZero('ROUSE_DEFAULT_MAX_WAIT_TIME_SECONDS', centurySeconds),
  maxSize: fromZero('ROUSE_DEFAULT_MAX_SIZE', Number.MAX_SAFE_INTEGER),
  priority: integer('ROUSE_DEFAULT_PRIORITY', undefined, { min: -1_000_000, max: 1_000_000 }),
  maxInFlight: fromZero('ROUSE_DEFAULT_MAX_IN_FLIGHT', 1_000_000),
  dedupWindowSeconds: fromZero('ROUSE_DEFAULT_DEDUP_WINDOW_SECONDS', yearSeconds),
  encryptionEnabled: boolean('ROUSE_DEFAULT_ENCRYPTION_ENABLED', undefined),
} as const satisfies Record<string, Setting<unknown>>

function seconds(env: string, fallback: number): Setting<number> {
  return integer(env, fallback, { min: 1, max: centurySeconds })
}

function fromZero(env: string, max: number): Setting<number | undefined> {
  return integer<number | undefined>(env, undefined, { min: 0, max })
}

function optional<Value>(setting: Setting<Value>): Setting<Value | undefined> {
  return { ...setting, fallback: undefined }
}
