import { writeAudit } from '@rouse/storage'
import type pg from 'pg'
import { type Access, createAccess } from '../auth/access.ts'
import { AuditLog, type AuditLogOptions } from '../auth/audit-log.ts'
import type { ClientCertificates } from '../auth/client-certificates.ts'
import { KeyRing } from '../auth/key-ring.ts'
import { OpenPolls } from '../auth/open-polls.ts'
import { RateLimits } from '../auth/rate-limits.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { Outbox, PrimaryMessage, WorkerMessage } from '../ipc.ts'
import type { Logger } from '../log.ts'
import { createIssuerClient, type IssuerClient } from './issuer-client.ts'

const answerMsMax = 2_000
/** How often used keys are reported, and pops whose key has expired are ended. */
const reportMs = 5_000
/** How often the use of keys with limits is reported. Open pops are repeated every tenth time. */
const useMs = 100
const usesPerRepeat = 10

export interface KeyClient {
  /** Resolves when the primary has sent the API keys. */
  start(): Promise<void>
  stop(): void
  /** The keys have changed. Resolves when this worker has read them again, or after two seconds. */
  changed(): Promise<void>
  received(message: Extract<PrimaryMessage, { readonly type: 'keys' | 'limitUse' }>): void
}

/** Who sends a request to this worker, and the credential of the requests that it sends itself. */
export function createWorkerAuth(options: {
  readonly config: Config
  readonly outbox: Outbox<WorkerMessage>
  readonly pool: pg.Pool
  readonly log: Logger
  readonly clock: Clock
  /** The id of this worker in its node. */
  readonly workerId: number
  readonly certificates: ClientCertificates | undefined
}): {
  readonly keyClient: KeyClient
  readonly issuerClient: IssuerClient
  readonly access: Access
  readonly issuerLogin: IssuerClient['login']
  readonly openPolls: OpenPolls
  readonly rateLimits: RateLimits
  readonly audit: AuditLog
  readonly keysChanged: () => Promise<void>
  readonly nodeAuthorization: () => string
} {
  const { config, outbox, pool, log, clock, workerId, certificates } = options
  const write: AuditLogOptions['write'] = (entries) => writeAudit(pool, config.nodeId, entries)
  const ring = new KeyRing(clock)
  const openPolls = new OpenPolls()
  const rateLimits = new RateLimits(clock)
  const keyClient = createKeyClient({ outbox, ring, openPolls, rateLimits, clock, workerId })
  const issuerClient = createIssuerClient(config, outbox, clock)
  return {
    keyClient,
    issuerClient,
    access: createAccess(config, ring, clock, certificates, issuerClient.tokens),
    issuerLogin: issuerClient.login,
    openPolls,
    rateLimits,
    audit: new AuditLog({ write, log, clock }),
    keysChanged: () => keyClient.changed(),
    nodeAuthorization: () => `Bearer ${ring.signForNode()}`,
  }
}

/** Keeps the key ring of a worker up to date, ends pops whose key has ended, and reports which keys are used. */
function createKeyClient(options: {
  readonly outbox: Outbox<WorkerMessage>
  readonly ring: KeyRing
  readonly openPolls: OpenPolls
  readonly rateLimits: RateLimits
  readonly clock: Clock
  readonly workerId: number
}): KeyClient {
  const { outbox, ring, openPolls, rateLimits, clock, workerId } = options
  const asked = new Map<number, () => void>()
  let lastId = 0
  let timer: NodeJS.Timeout | undefined
  const useReports = createUseReports(rateLimits, outbox)

  function ask(haveChanged: boolean): Promise<void> {
    lastId += 1
    const id = lastId
    const answered = new Promise<void>((resolve) => asked.set(id, resolve))
    outbox.post({ type: 'askKeys', id, haveChanged })
    return answered
  }

  function report(): void {
    const ids = ring.takeUsed()
    if (ids.length > 0) outbox.post({ type: 'keysUsed', ids })
  }

  return {
    start() {
      timer ??= setInterval(() => {
        report()
        // Keys expire while the database is unavailable, too, and then nothing is received.
        openPolls.endInvalid(ring, clock.wallMs())
      }, reportMs)
      return ask(false)
    },
    stop() {
      clearInterval(timer)
      timer = undefined
      useReports.stop()
      report()
    },
    async changed() {
      let timeout: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timeout = setTimeout(resolve, answerMsMax)
      })
      await Promise.race([ask(true), late])
      clearTimeout(timeout)
    },
    received(message) {
      if (message.type === 'limitUse') {
        if (message.workerId !== workerId) rateLimits.applyUse(message.workerId, message.uses)
        return
      }
      const { table, ageMs, nodes, id } = message
      ring.update(table, ageMs)
      rateLimits.nodes = nodes
      if (table !== undefined) rateLimits.keep(ring.keyIds)
      if (ring.hasLimits && timer !== undefined) useReports.start()
      else useReports.stop()
      openPolls.endInvalid(ring, clock.wallMs())
      if (id === undefined) return
      asked.get(id)?.()
      asked.delete(id)
    },
  }
}

/** Reports what this worker admits, so that all workers of the node share the limits of a key. Runs only while keys
 * have limits. */
function createUseReports(rateLimits: RateLimits, outbox: Outbox<WorkerMessage>) {
  let timer: NodeJS.Timeout | undefined
  let count = 0

  function report(): void {
    count += 1
    const uses = rateLimits.takeUse(count % usesPerRepeat === 0)
    if (uses.length > 0) outbox.post({ type: 'limitUse', uses })
  }

  return {
    start(): void {
      timer ??= setInterval(report, useMs)
    },
    stop(): void {
      clearInterval(timer)
      timer = undefined
    },
  }
}
