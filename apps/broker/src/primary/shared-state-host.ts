// Connects the SharedStateManager to the rest of the primary: the host receives messages of workers and hints
// of peers, sends grants to workers, and runs timers and the fallback poll.
import { isCompletionGroup, type WaitGroup, type WakeHint } from '@rouse/protocol'
import { groupKey, SharedStateManager } from '@rouse/shared-state'
import type { WorkerMessage } from '../ipc.ts'
import { FallbackPoll } from './fallback-poll.ts'
import { HealthReports } from './health-reports.ts'
import { type HostPartners, managerSettings, type SharedStateHostOptions } from './host-options.ts'
import { MovedQueues } from './moved-queues.ts'
import { WorkerReports } from './worker-reports.ts'

/** Below the maximum of setTimeout. Waking up early costs nothing. */
const timerMsMax = 60_000

export class SharedStateHost {
  readonly #options: SharedStateHostOptions
  readonly #manager: SharedStateManager
  readonly #reports: WorkerReports
  readonly #moved = new MovedQueues({
    again: (hint) => this.notifyFree([hint], 'timer'),
    tooMany: () => this.#manager.announceEverything(),
  })
  // Set by `connect`.
  #link!: HostPartners['link']
  #timers!: HostPartners['timers']
  #hasMetPeers = false
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = Number.POSITIVE_INFINITY
  #stopped = false
  /** Whether any node waits for messages, as last sent to the workers. While none does, they send no hints. */
  #areHintsWanted = true
  readonly #health: HealthReports
  readonly #fallback: FallbackPoll

  constructor(options: SharedStateHostOptions) {
    const { config, clock, workers } = options
    this.#options = options
    this.#health = new HealthReports(options.events, config.nodeId, clock.nowMs)
    this.#reports = new WorkerReports({
      activity: options.activity,
      pausesOf: (queue, fromMs) => options.events.pausesOf(queue, fromMs),
      databaseAheadMs: () => this.#timers.databaseAheadMs(),
      post: (workerId, message) => workers.post(workerId, message),
      stats: (workerStats) => options.stats(this.#manager.getStats(), workerStats),
    })
    this.#manager = new SharedStateManager(
      {
        now: clock.nowMs,
        grant: (sidecarId, description, grantId, source, waitedMs) => {
          const grant = { description, grantId, source, waitedMs }
          workers.post(sidecarId as number, { type: 'grant', grant })
          options.events.wakes?.granted(sidecarId as number, grant)
        },
        broadcast: (hint, kind, served) => {
          if (this.#hasMetPeers) this.#link.broadcast(hint, kind, { served })
        },
        broadcastEverything: () => {
          this.#queuesChanged()
          this.#link.broadcastEverything()
        },
        interestChanged: (version) => this.#link.interestChanged(version),
      },
      managerSettings(config),
    )
    const { pool, log } = options
    this.#fallback = new FallbackPoll({ pool, log, manager: this.#manager })
  }

  /** Call once, before the first event. */
  connect({ link, timers }: HostPartners): void {
    this.#link = link
    this.#timers = timers
  }

  handle(workerId: number, messages: readonly WorkerMessage[]): void {
    for (const message of messages) this.#handle(workerId, message)
    this.#schedule()
  }

  workerGone(workerId: number, how: 'died' | 'left'): void {
    this.#manager.unregisterSidecar(workerId, how)
    this.#reports.workerGone(workerId)
    this.#options.events.workerGone(workerId)
    this.#schedule()
  }

  /** This primary made messages deliverable, by a timer or after a NOTIFY. */
  notifyAvailable(woken: readonly WakeHint[], origin: 'timer' | 'notify'): void {
    this.#options.events.wakes?.announced(origin, woken)
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
    this.#health.listenerLost()
    this.#manager.reportFault('listener_lost')
    this.#schedule()
  }

  /** The node got no notifications during the outage, so it checks all wait groups. */
  listenerBack(): void {
    this.#health.listenerBack()
    this.#manager.clearFault('listener_lost')
    this.#manager.notifyEverything('notify')
    this.#schedule()
  }

  /**
   * Another node has made contact and counts our hints from now on. Until the first contact this node sends
   * no hints, because no other node would receive or miss them.
   */
  peerMet(): void {
    this.#hasMetPeers = true
  }

  /** A peer sent a hint. `settle` reports to it that waiters of this node took everything. */
  heard(hint: WakeHint, settle?: () => void): void {
    this.#manager.handleMessageAvailable(hint, 'udp', settle)
    this.#schedule()
  }

  /** A peer changed the options of a queue. */
  heardConfigured(hint: WakeHint): void {
    this.#queuesChanged()
    this.heard(hint)
  }

  /** Hints of a peer may be lost: any queue may have messages. */
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
    this.#fallback.stop()
    clearTimeout(this.#timer)
  }

  #handle(workerId: number, message: WorkerMessage): void {
    const manager = this.#manager
    switch (message.type) {
      case 'ready':
        manager.registerSidecar(workerId)
        if (!this.#areHintsWanted) {
          this.#options.workers.post(workerId, { type: 'hintsWanted', areWanted: false })
        }
        return this.#link.listening(message.url)
      case 'waiting':
        return this.#setWaiting(workerId, message.group, message.count)
      case 'requestGrant':
        return manager.requestGrant(workerId, groupKey(message.group), message)
      case 'taken':
        manager.grantTaken(workerId, groupKey(message.grant.description), message.grant.grantId)
        return
      case 'release': {
        const { description, grantId } = message.grant
        this.#options.events.wakes?.released(workerId, message)
        if (message.outcome === 'empty' && !isCompletionGroup(description.group)) {
          this.#timers.popFoundNothing()
        }
        manager.releaseGroup(groupKey(description), grantId, message.outcome, message.found)
        return
      }
      case 'available':
        this.#options.events.wakes?.announced('push', message.woken, workerId)
        for (const hint of message.woken) {
          manager.notifyMessageAvailable(hint, { sidecarId: workerId })
        }
        return
      case 'free':
        this.#options.events.wakes?.announced('free', message.woken, workerId)
        for (const hint of message.woken) manager.notifyPartitionFree(hint, { sidecarId: workerId })
        return
      case 'configured':
        this.#queuesChanged()
        // New options may release messages that were held back, and a namespace may have gained a queue.
        manager.handleMessageAvailable(message.hint, 'ipc')
        if (message.hasMoved) this.#moved.add(message.hint)
        return this.#link.tellConfigured(message.hint, message.version)
      case 'scheduled': {
        const dueAtMs = this.#timers.expectDue(message.due)
        if (dueAtMs !== undefined) this.#link.tellScheduled(message.queue, dueAtMs)
        return
      }
      case 'pollDue':
        return this.#timers.pollDueTimes()
      case 'blocked':
        // This node's promotion wakes the waiters of all nodes, so peers get no notice.
        this.#timers.expectDue({ atMs: message.untilMs })
        return
      case 'expires':
        // Other nodes find it with their next due poll.
        this.#timers.expect(message.atMs, 'reap')
        return
      case 'hintsLost':
        return manager.announceEverything()
      case 'outcomeUnknown':
        return manager.announceEverything('outcome_unknown')
      case 'workerStats':
        this.#reports.add(workerId, message)
        this.#health.workersReport(this.#reports.isDatabaseUp())
        return manager.heardSidecar(workerId)
      case 'askKeys':
      case 'keysUsed':
      case 'limitUse':
        return this.#options.keys.received(workerId, message)
      case 'queueChanged':
      case 'watchEvents':
      case 'askEvents':
        return this.#options.events.received(workerId, message)
      case 'askIssuer':
        return this.#options.issuer.received(workerId, message)
      case 'askStats':
      case 'askSeries':
      case 'askTraces':
        return this.#reports.answer(workerId, message)
    }
  }

  /** Invalidates what workers and the scheduler of this node have cached about queues. */
  #queuesChanged(): void {
    this.#options.workers.postAll({ type: 'configured' })
    this.#timers.pollDueTimes()
  }

  #setWaiting(workerId: number, description: WaitGroup, count: number): void {
    if (this.#manager.setWaiting(workerId, description, count)) return
    const group = groupKey(description)
    this.#options.log.warn({ group }, 'too many wait groups: this group gets no wake-ups')
  }

  /** The peers may wait for more or less than before. */
  peersChanged(): void {
    this.#schedule()
  }

  /** One timer, for the earliest deadline. */
  #schedule(): void {
    this.#setHintsWanted(this.#manager.hasGroups() || this.#link.peersWait())
    const { mode } = this.#manager
    if (mode.mode !== this.#health.mode) this.#health.modeChanged(mode)
    const atMs = this.#manager.nextWakeAt()
    if (this.#stopped || atMs >= this.#timerAtMs) return
    clearTimeout(this.#timer)
    const nowMs = this.#options.clock.nowMs()
    this.#timerAtMs = atMs
    const inMs = Math.ceil(Math.min(timerMsMax, Math.max(1, atMs - nowMs)))
    // After a stall, timers run before the channels are read. With setImmediate the messages of workers are
    // handled first. Otherwise workers would seem unresponsive because of the primary's own delay.
    this.#timer = setTimeout(() => setImmediate(() => this.#wake()), inMs)
  }

  #setHintsWanted(areWanted: boolean): void {
    if (areWanted === this.#areHintsWanted) return
    this.#areHintsWanted = areWanted
    this.#options.workers.postAll({ type: 'hintsWanted', areWanted })
  }

  #wake(): void {
    if (this.#stopped) return
    this.#timerAtMs = Number.POSITIVE_INFINITY
    this.#manager.tick()
    const due = this.#manager.dueForFallback()
    if (due.size > 0) void this.#fallback.run(due).then(() => this.#schedule())
    this.#schedule()
  }
}
