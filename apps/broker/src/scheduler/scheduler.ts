// Composes everything a node does without a request: due messages, expired leases, retention, redrives,
// removals and cron.

import { provesNotCommitted } from '@rouse/database'
import { completionGroup, type WakeHint } from '@rouse/protocol'
import type { Executor, IdleGroup } from '@rouse/storage'
import { dueChores, dueTimes, poolExecutor, redriveStep, removalStep } from '@rouse/storage'
import type pg from 'pg'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import { payloadCipherOf } from '../encryption/payload-cipher.ts'
import type { Logger } from '../log.ts'
import { watchEventLoop } from '../observe/event-loop-watch.ts'
import type { NodeActivity } from '../observe/node-activity.ts'
import type { SharedStateHost } from '../primary/shared-state-host.ts'
import { createCron } from './cron.ts'
import { createPromoter } from './jobs/promote.ts'
import { createRetention, type Retention } from './jobs/retain.ts'
import { createReaper, createSharedJob, together } from './jobs/steps.ts'
import { Listener } from './listener.ts'
import type { Job, Service } from './service.ts'
import { Timers } from './timers.ts'

type Host = Pick<
  SharedStateHost,
  'notifyAvailable' | 'notifyFree' | 'outcomeUnknown' | 'listenerLost' | 'listenerBack'
>

export interface TimeServicesOptions {
  readonly config: Config
  readonly pool: pg.Pool
  readonly log: Logger
  readonly clock: Clock
  readonly random: () => number
  readonly newMessageId: () => string
  readonly host: Host
  readonly activity: Pick<NodeActivity, 'entered' | 'expired' | 'histograms'>
}

export interface TimeServices extends Service {
  readonly timers: Omit<Timers, keyof Service>
  stats(): {
    readonly time: Readonly<Record<string, unknown>>
    /** The consumer groups that hold back retention. */
    readonly holding: readonly IdleGroup[]
  }
}

export function createTimeServices(options: TimeServicesOptions): TimeServices {
  const { config, pool, log, clock, newMessageId, host, activity } = options
  const executor = poolExecutor(pool, config.prepare)
  const listens = config.notify === 'on'
  const onUnknown = () => host.outcomeUnknown()
  const withUnknownOutcome = (job: Job) => reportUnknownOutcome(job, onUnknown)
  const shared = createSharedJobs(options, (inMs) => timers.expectIn(inMs, 'retain'))

  const promoter = createPromoter({
    executor,
    log,
    onUnknown,
    onWoken: (woken, firedBy) => host.notifyAvailable(woken, firedBy),
    onEntered: (woken) => activity.entered(woken),
  })
  const timers: Timers = new Timers({
    readDueTimes: (horizonMs) => dueTimes(pool, horizonMs),
    clock,
    log,
    jobs: {
      reap: withUnknownOutcome(createReaping(options, executor, () => timers.pollDueTimes())),
      promote: promoter,
      cron: withUnknownOutcome(
        createCron({
          pool,
          log,
          cipher: payloadCipherOf(config.encryptionKey),
          newMessageId,
          onWoken: (woken) => {
            host.notifyAvailable(woken, 'timer')
            activity.entered(woken)
          },
          onNext: (atMs) => timers.expect(atMs, 'cron'),
        }),
      ),
      retain: withUnknownOutcome(shared.job),
    },
  })

  const listener = createListener(options, timers)
  const loop = watchEventLoop((ms) => activity.histograms.record('eventLoop', 'primary', ms))
  return {
    timers,
    async start() {
      loop.start()
      // LISTEN before the first due poll, so that no commit in between is missed.
      if (listens) await listener.start()
      await timers.start()
    },
    async stop() {
      loop.stop()
      await listener.stop()
      await timers.stop()
      await promoter.stop()
    },
    stats: () => ({
      time: {
        ...timers.stats(),
        listener: listens ? listener.state() : 'off',
        notifications: listener.notifications,
      },
      holding: shared.retention.holding,
    }),
  }
}

function createReaping(
  { host, activity }: TimeServicesOptions,
  executor: Executor,
  pollDueTimes: () => void,
): Job {
  return createReaper({
    executor,
    onWoken(woken) {
      host.notifyFree(woken, 'timer')
      // A message that has expired for the last time may be moved to another queue.
      if (woken.length > 0) pollDueTimes()
      // A hint for requests that wait for a message to end does not stand for an expired lease.
      activity.expired(woken.filter(({ group }) => group !== completionGroup).length)
    },
  })
}

/** If a job loses its connection before the answer, it may have made messages deliverable without a hint. */
function reportUnknownOutcome(job: Job, onOutcomeUnknown: () => void): Job {
  return {
    async run(firedBy) {
      try {
        return await job.run(firedBy)
      } catch (error) {
        if (!provesNotCommitted(error)) onOutcomeUnknown()
        throw error
      }
    },
  }
}

/** Jobs that one node at a time does for the cluster. One due poll reads the due times of all of them. */
function createSharedJobs(
  { config, pool, log, clock, host }: TimeServicesOptions,
  onNext: (inMs: number) => void,
): { readonly job: Job; readonly retention: Retention } {
  const holder = config.nodeId
  const onWoken = (woken: readonly WakeHint[]) => host.notifyAvailable(woken, 'timer')
  const redrive = createSharedJob({ takeStep: () => redriveStep(pool, holder), onWoken, onNext })
  const removal = createSharedJob({ takeStep: () => removalStep(pool, holder), onWoken, onNext })
  const retention = createRetention({
    pool,
    log,
    nowMs: () => clock.nowMs(),
    holder,
    intervalMs: config.retentionIntervalMs,
    keep: keptFor(config),
    auditMs: config.auditRetentionSeconds * 1_000,
    onNext,
  })
  const job: Job = {
    async run(firedBy) {
      const due = await dueChores(pool)
      const own: Record<string, Job> = { redrive, removal }
      const others = Object.keys(own).filter((name) => due.has(name))
      const parts = due.size > others.length ? retention : retention.watch
      return await together(...others.map((name) => own[name] as Job), parts).run(firedBy)
    },
  }
  return { job, retention }
}

/** How long each kind of row is kept. */
function keptFor(config: Config): Parameters<typeof createRetention>[0]['keep'] {
  return {
    completedMs: config.completedRetentionSeconds * 1_000,
    deadMs: config.deadLetterRetentionSeconds * 1_000,
    tracesMs: config.traceRetentionSeconds * 1_000,
    idlePartitionMs: config.idlePartitionSeconds * 1_000,
    idleGroupMs: config.idleGroupSeconds === 0 ? null : config.idleGroupSeconds * 1_000,
  }
}

function createListener(
  { config, log, random, host }: TimeServicesOptions,
  timers: Timers,
): Listener {
  return new Listener({
    url: config.listenUrl ?? config.databaseUrl,
    applicationName: `rouse ${config.nodeId} listener`,
    log,
    random,
    onDue(dueAtMs) {
      if (dueAtMs === 0) timers.run('promote', 'notify')
      else timers.expect(dueAtMs)
    },
    onUp() {
      host.listenerBack()
      timers.run('promote', 'notify')
      timers.pollDueTimes()
    },
    onDown: () => host.listenerLost(),
  })
}
