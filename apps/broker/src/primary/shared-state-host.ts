// Connects the SharedStateManager to the outside: worker messages in, grants out, timers, and the fallback
// poll.
import type { WaitGroup, WakeHint } from '@rouse/protocol'
import {
  type GroupKey,
  groupKey,
  SharedStateManager,
  type SharedStateStats,
} from '@rouse/shared-state'
import { groupsWithWork } from '@rouse/storage'
import type pg from 'pg'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { Due, PrimaryMessage, WorkerMessage, WorkerStats } from '../ipc.ts'
import type { Logger } from '../log.ts'
import { MovedQueues } from './moved-queues.ts'

export interface SharedStateHostOptions {
  readonly config: Config
  readonly clock: Clock
  readonly log: Logger
  readonly pool: pg.Pool
  readonly post: (workerId: number, message: PrimaryMessage) => void
  readonly postAll: (message: PrimaryMessage) => void
  readonly peers: PeerPort
  readonly time: TimePort
  readonly stats: (
    shared: SharedStateStats,
    workerStats: ReadonlyMap<number, WorkerStats>,
  ) => Readonly<Record<string, unknown>>
}

/** Notifications to the other nodes. */
export interface PeerPort {
  readonly broadcast: (hint: WakeHint, kind: 'available' | 'free') => void
  readonly configured: (hint: WakeHint, version: number) => void
  readonly broadcastEverything: () => void
  readonly interestChanged: (version: number) => void
}

/** Notifications to the scheduler of this node. */
export interface TimePort {
  readonly scheduled: (queue: string, due: Due) => void
  readonly pollDueTimes: () => void
  readonly popFoundNothing: () => void
}

/** A waiter may have its own wait group and may just have left another, so no allowed waiter is rejected. */
const groupsPerWaiter = 2
/** Below the maximum of setTimeout. Waking up early costs nothing. */
const timerMsMax = 60_000

export class SharedStateHost {
  readonly #options: SharedStateHostOptions
  readonly #manager: SharedStateManager
  readonly #workerStats = new Map<number, WorkerStats>()
  readonly #moved = new MovedQueues({
    again: (hint) => this.#hintAgain(hint),
    tooMany: () => this.#manager.announceEverything(),
  })
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = Number.POSITIVE_INFINITY
  #stopped = false
  /** An unavailable database is logged once. */
  #failing = false

  constructor(options: SharedStateHostOptions) {
    const { config, clock, post, peers } = options
    this.#options = options
    this.#manager = new SharedStateManager(
      {
        now: clock.nowMs,
        grant: (sidecarId, description, grantId) => {
          post(sidecarId as number, { type: 'grant', grant: { description, grantId } })
        },
        broadcast: peers.broadcast,
        broadcastEverything: () => {
          this.#queuesChanged()
          peers.broadcastEverything()
        },
        interestChanged: peers.interestChanged,
      },
      {
        baseIntervalMs: config.popWaitBaseIntervalMs,
        maxIntervalMs: config.popWaitMaxIntervalMs,
        backoffThreshold: config.popWaitBackoffThreshold,
        backoffMultiplier: config.popWaitBackoffMultiplier,
        idleIntervalMs: config.popWaitIdleIntervalMs,
        aggressivePollDurationMs: config.aggressivePollDurationMs,
        aggressiveExitThreshold: config.aggressiveExitThreshold,
        deliveryTimeoutMs: config.notifyDeliveryTimeoutMs,
        groupsMax: groupsPerWaiter * config.workers * config.waitersMax,
      },
    )
  }

  handle(workerId: number, messages: readonly WorkerMessage[]): void {
    for (const message of messages) this.#handle(workerId, message)
    this.#schedule()
  }

  workerGone(workerId: number, how: 'died' | 'left'): void {
    this.#manager.unregisterSidecar(workerId, how)
    this.#workerStats.delete(workerId)
    this.#schedule()
  }

  /** This primary made messages deliverable, by a timer or after a NOTIFY. */
  notifyAvailable(woken: readonly WakeHint[], origin: 'timer' | 'notify'): void {
    for (const hint of woken) this.#manager.notifyMessageAvailable(hint, origin)
    this.#schedule()
  }

  /** This primary freed lanes. */
  notifyFree(woken: readonly WakeHint[], origin: 'timer' | 'notify'): void {
    for (const hint of woken) this.#manager.notifyPartitionFree(hint, origin)
    this.#schedule()
  }

  /** The outcome of a job that may have made messages deliverable is unknown. */
  outcomeUnknown(): void {
    this.#manager.announceEverything('outcome_unknown')
    this.#schedule()
  }

  listenerLost(): void {
    this.#manager.reportFault('listener_lost')
    this.#schedule()
  }

  /** Commits during the outage were not notified. */
  listenerBack(): void {
    this.#manager.clearFault('listener_lost')
    this.#manager.notifyEverything('notify')
    this.#schedule()
  }

  /** A peer sent a hint. */
  heard(hint: WakeHint): void {
    this.#manager.handleMessageAvailable(hint, 'udp')
    this.#schedule()
  }

  /** A peer changed the options of a queue. */
  heardConfigured(hint: WakeHint): void {
    this.#queuesChanged()
    this.heard(hint)
  }

  /** A peer lost hints: any queue may have messages. */
  heardEverything(): void {
    this.#queuesChanged()
    this.#manager.notifyEverything('udp')
    this.#schedule()
  }

  peersAreSilent(areSilent: boolean): void {
    if (areSilent) this.#manager.reportFault('peer_silent')
    else this.#manager.clearFault('peer_silent')
    this.#schedule()
  }

  interests(): ReturnType<SharedStateManager['interests']> {
    return this.#manager.interests()
  }

  /** Every peer has confirmed this version of our interests. */
  interestEchoed(version: number): void {
    this.#manager.interestEchoed(version)
    this.#schedule()
  }

  stop(): void {
    this.#stopped = true
    this.#moved.stop()
    clearTimeout(this.#timer)
  }

  #handle(workerId: number, message: WorkerMessage): void {
    const manager = this.#manager
    switch (message.type) {
      case 'ready':
        return manager.registerSidecar(workerId)
      case 'waiting':
        return this.#setWaiting(workerId, message.group, message.count)
      case 'requestGrant':
        return manager.requestGrant(workerId, groupKey(message.group))
      case 'taken':
        manager.grantTaken(workerId, groupKey(message.grant.description), message.grant.grantId)
        return
      case 'release': {
        const { description, grantId } = message.grant
        if (message.outcome === 'empty') this.#options.time.popFoundNothing()
        manager.releaseGroup(groupKey(description), grantId, message.outcome, message.found)
        return
      }
      case 'available':
        for (const hint of message.woken) {
          manager.notifyMessageAvailable(hint, { sidecarId: workerId })
        }
        return
      case 'free':
        for (const hint of message.woken) manager.notifyPartitionFree(hint, { sidecarId: workerId })
        return
      case 'configured':
        this.#queuesChanged()
        // New options may release messages that were held back, and a namespace may have gained a queue.
        manager.handleMessageAvailable(message.hint, 'ipc')
        if (message.hasMoved) this.#moved.add(message.hint)
        return this.#options.peers.configured(message.hint, message.version)
      case 'scheduled':
        return this.#options.time.scheduled(message.queue, message.due)
      case 'pollDue':
        return this.#options.time.pollDueTimes()
      case 'hintsLost':
        return manager.announceEverything()
      case 'outcomeUnknown':
        return manager.announceEverything('outcome_unknown')
      case 'workerStats':
        this.#workerStats.set(workerId, message.stats)
        return manager.heardSidecar(workerId)
      case 'askStats': {
        const stats = this.#options.stats(manager.getStats(), this.#workerStats)
        return this.#options.post(workerId, { type: 'stats', id: message.id, stats })
      }
    }
  }

  /** Invalidates what workers and the scheduler of this node have cached about queues. */
  #queuesChanged(): void {
    this.#options.postAll({ type: 'configured' })
    this.#options.time.pollDueTimes()
  }

  /** Wakes the waiters here and on peers. */
  #hintAgain(hint: WakeHint): void {
    this.#manager.notifyPartitionFree(hint, 'timer')
    this.#schedule()
  }

  #setWaiting(workerId: number, description: WaitGroup, count: number): void {
    if (this.#manager.setWaiting(workerId, description, count)) return
    const group = groupKey(description)
    this.#options.log.warn({ group }, 'too many wait groups: this one gets no wake-ups')
  }

  /** One timer, for the earliest deadline. */
  #schedule(): void {
    const atMs = this.#manager.nextWakeAt()
    if (this.#stopped || atMs >= this.#timerAtMs) return
    clearTimeout(this.#timer)
    const nowMs = this.#options.clock.nowMs()
    this.#timerAtMs = atMs
    const inMs = Math.ceil(Math.min(timerMsMax, Math.max(1, atMs - nowMs)))
    // After a stall, timers run before the channels are read. setImmediate lets the messages of workers in
    // first; otherwise workers would be blamed for the primary's own delay.
    this.#timer = setTimeout(() => setImmediate(() => this.#wake()), inMs)
  }

  #wake(): void {
    if (this.#stopped) return
    this.#timerAtMs = Number.POSITIVE_INFINITY
    this.#manager.tick()
    const due = this.#manager.dueForFallback()
    if (due.size > 0) void this.#poll(due)
    this.#schedule()
  }

  async #poll(due: ReadonlyMap<GroupKey, WaitGroup>): Promise<void> {
    const keys = [...due.keys()]
    try {
      const positions = await groupsWithWork(this.#options.pool, [...due.values()])
      this.#failing = false
      this.#manager.fallbackResult(positions.flatMap((position) => keys[position] ?? []))
    } catch (error) {
      if (this.#stopped) return
      if (!this.#failing) {
        this.#options.log.warn({ reason: (error as Error).message }, 'fallback poll failed')
      }
      this.#failing = true
      this.#manager.fallbackFailed()
    }
    this.#schedule()
  }
}
