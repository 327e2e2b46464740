// A worker of a node: composes its parts, serves HTTP, and drains on request. It exits when its primary does.

import cluster from 'node:cluster'
import type { Server } from 'node:http'
import { createPool } from '@rouse/database'
import { createMessageIds, type Limits, limits } from '@rouse/protocol'
import { type Coordinator, SidecarDbPool, type SidecarObserver } from '@rouse/sidecar'
import { poolExecutor } from '@rouse/storage'
import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import { idSources, systemClock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import { nodeConnections } from '../config/connections.ts'
import { payloadCipherOf } from '../encryption/payload-cipher.ts'
import { createEncryptedQueues } from '../encryption/sealing.ts'
import { createServer } from '../http/server.ts'
import { openTls } from '../http/tls.ts'
import { createLogger, type Logger, logLimit } from '../log.ts'
import { MessageSpans } from '../observe/tracing/message-spans.ts'
import { SpanExporter } from '../observe/tracing/span-exporter.ts'
import { WorkerObserver } from '../observe/worker-observer.ts'
import { cannotListenExitCode } from '../primary/worker-pool.ts'
import { logNotices } from '../sql-notices.ts'
import { version } from '../version.ts'
import type { BrokerContext, WorkerPhase } from './context.ts'
import { DeadLetterLog } from './dead-letter-log.ts'
import { createDeliveryLog } from './delivery-log.ts'
import { createWorkerDrain, type WorkerDrain } from './drain.ts'
import { createWorkerAuth } from './key-client.ts'
import { createLeaseLookups } from './lease-lookups.ts'
import { createObservation } from './observation.ts'
import {
  handlePrimaryMessages,
  outboxToPrimary,
  remoteCoordinator,
  withDueNotices,
} from './primary-channel.ts'
import { createReadiness } from './readiness.ts'

export async function runWorker(config: Config): Promise<void> {
  const workerId = cluster.worker?.id ?? 0
  const log = workerLog(config, workerId)
  const pool = createWorkerPool(config, workerId, log)
  const phase = { isDraining: false }
  const counts = { requests: 0 }
  const outbox = outboxToPrimary()
  const { coordinator, gate } = remoteCoordinator(outbox, systemClock.nowMs)
  const observer = createObserver(config, workerId)
  const sidecar = createSidecar({ config, workerId, pool, coordinator, observer })
  const cipher = payloadCipherOf(config.encryptionKey)
  const encrypted = createEncryptedQueues({ cipher, pool, log })
  const tls = openTls(config, log)
  const { certificates } = tls
  const authOptions = { config, outbox, pool, log, clock: systemClock, workerId, certificates }
  const { keyClient, issuerClient, ...auth } = createWorkerAuth(authOptions)
  const spans = createSpans(config, log)
  const observed = { spans, observer, outbox, sidecar, pool, counts, clock: systemClock, config }
  const observation = createObservation({ ...observed, nodeAuthorization: auth.nodeAuthorization })
  const readiness = createReadiness({ pool, nowMs: systemClock.nowMs })
  const drain = createWorkerDrain({
    phase,
    log,
    sidecar,
    pool,
    connections: () => connectionsOf(app.server),
    delayMs: config.drainDelayMs,
    close: () => app.close(),
    stop() {
      observation.stop()
      encrypted.stop()
      keyClient.stop()
    },
  })

  const context: BrokerContext = {
    config,
    limits: limitsOf(config),
    ...auth,
    clock: systemClock,
    log,
    spans,
    deadLetterLog: new DeadLetterLog(log, systemClock.nowMs),
    deliveryLog: createDeliveryLog(log, systemClock.nowMs),
    pool,
    sidecar: encrypted.wrap(withDueNotices(sidecar, outbox)),
    leases: createLeaseLookups(pool, { timeoutMs: config.writeTimeoutMs }),
    queueOfPartition: (partitionId) => observer.queueOf(partitionId),
    cipher,
    coordinator,
    requestDuePoll: () => outbox.post({ type: 'pollDue' }),
    tellConfigured: (hint, version, hasMoved) =>
      outbox.post({ type: 'configured', hint, version, hasMoved }),
    holder: `${config.nodeId}/${workerId}`,
    newMessageId: createMessageIds(idSources),
    phase,
    counts,
    checkReady: () => readiness.check(phase.isDraining),
    ...observation.context,
  }
  const app = createServer(context, tls.options)
  const reloadTls = () => tls.reload(app.server)
  const clients = { keyClient, issuerClient }
  handlePrimaryMessages({ sidecar, gate, encrypted, observation, ...clients, reloadTls, drain })
  handleProcessEvents(phase, drain)
  await Promise.all([encrypted.start(), keyClient.start(), issuerClient.start()])
  outbox.post({ type: 'ready', url: await listen(app, config, log) })
  // Pops may already be waiting: if the worker listens on two addresses, the first one accepts requests while
  // the second is being resolved.
  sidecar.registered()
  observation.start()
}

function workerLog({ logLevel, logFormat, nodeId }: Config, workerId: number): Logger {
  const names = { node: nodeId, process: `worker ${workerId}` }
  return createLogger({ level: logLevel, format: logFormat, ...names })
}

function createObserver(config: Config, worker: number) {
  const { nodeId: node, whySlowMs: slowMs } = config
  const isOn = config.observation === 'on'
  return new WorkerObserver({ ...systemClock, node, worker, slowMs, isOn })
}

function createSpans({ otlpUrl, nodeId }: Config, log: Logger): MessageSpans {
  if (otlpUrl === undefined) return new MessageSpans(undefined, systemClock)
  const onFailure = (reason: string) => log.warn({ reason }, 'spans could not be exported')
  const exporter = new SpanExporter({ url: otlpUrl, node: nodeId, version, onFailure })
  return new MessageSpans(exporter, systemClock)
}

function createWorkerPool(config: Config, workerId: number, log: Logger): pg.Pool {
  const pool = createPool({
    url: config.databaseUrl,
    max: nodeConnections(config).worker,
    applicationName: `rouse ${config.nodeId} worker ${workerId}`,
    onLimit: logLimit(log),
  })
  logNotices(pool, log, systemClock.nowMs)
  return pool
}

/** Resolves to the URL. */
function listen(app: FastifyInstance, { host, port }: Config, log: Logger): Promise<string> {
  return app.listen({ host, port }).catch((error: unknown) => {
    log.fatal({ err: error, host, port }, 'cannot listen')
    process.exit(cannotListenExitCode)
  })
}

function handleProcessEvents(phase: WorkerPhase, drain: WorkerDrain): void {
  process.on('disconnect', () => process.exit(phase.isDraining ? 0 : 1))
  process.on('SIGTERM', () => drain.begin())
  // A terminal sends the signal to every process, but only the primary decides when to stop.
  process.on('SIGINT', () => {})
  process.on('SIGHUP', () => {})
}

function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve) => server.getConnections((_error, count) => resolve(count ?? 0)))
}

function createSidecar({
  config,
  workerId,
  pool,
  coordinator,
  observer,
}: {
  readonly config: Config
  readonly workerId: number
  readonly pool: pg.Pool
  readonly coordinator: Coordinator
  readonly observer: SidecarObserver
}): SidecarDbPool {
  return new SidecarDbPool({
    observer: config.observation === 'off' ? undefined : observer,
    worker: String(workerId),
    takenAfterMs: Math.floor(config.notifyDeliveryTimeoutMs / 4),
    executor: poolExecutor(pool, config.prepare),
    coordinator,
    random: Math.random,
    waitersMax: config.waitersMax,
    timeoutMs: config.writeTimeoutMs,
    durableLeases: config.leaseDurability === 'strict',
    popBytesMax: config.popMaxBytes,
  })
}

function limitsOf(config: Config): Limits {
  return {
    ...limits,
    bodyBytesMax: config.bodyMaxBytes,
    headerBytesMax: config.headersMaxBytes,
    headersTimeoutMs: config.headersTimeoutMs,
    pushItemsMax: config.pushItemsMax,
    payloadBytesMax: config.payloadMaxBytes,
    batchMax: config.batchMax,
    partitionsMax: config.partitionsMax,
    popTimeoutMsMax: config.timeoutMaxMs,
    waitersPerWorkerMax: config.waitersMax,
    acknowledgmentsMax: config.acknowledgmentsMax,
    transactionOperationsMax: config.operationsMax,
  }
}
