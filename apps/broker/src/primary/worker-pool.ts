// The workers of a node: forks them and restarts them when they die.
import cluster, { type Worker } from 'node:cluster'
import type { Clock } from '../clock.ts'
import { ConfigError } from '../config/config-error.ts'
import {
  createOutbox,
  type Outbox,
  type PrimaryMessage,
  readBatch,
  type WorkerMessage,
} from '../ipc.ts'
import type { Logger } from '../log.ts'
import { closeUntaken } from './orphaned-sockets.ts'

/** Exit code of a worker that cannot listen. Restarting it would not help. */
export const cannotListenExitCode = 98

/** Exit code of a worker whose drain timed out. Its unfinished statements may still commit. */
export const unfinishedExitCode = 97

/** By default V8 lets the young generation grow to 48 MB in each worker and keeps it. Much less is enough. */
const youngGeneration = '--max-semi-space-size=4'

const respawnMsMin = 100
const respawnMsMax = 5_000
/** A worker that lived this long did not fail at startup, so its restart delay starts over. */
const healthyMs = 10_000

export interface WorkerProcessesOptions {
  readonly count: number
  /** Added to the primary's environment. */
  readonly env: Readonly<Record<string, string>>
  readonly clock: Clock
  readonly log: Logger
  readonly onMessages: (workerId: number, messages: readonly WorkerMessage[]) => void
  /** Called when a worker listens at this address. */
  readonly onReady: (url: string) => void
  readonly onExit: (workerId: number, how: 'died' | 'left') => void
}

interface Running {
  readonly worker: Worker
  readonly outbox: Outbox<PrimaryMessage>
  readonly startedAtMs: number
  isReady: boolean
}

export class WorkerProcesses {
  readonly #options: WorkerProcessesOptions
  readonly #running = new Map<number, Running>()
  readonly #respawns = new Set<NodeJS.Timeout>()
  #respawnMs = respawnMsMin
  #everReady = false
  #draining = false
  #haveAllLeft = true
  #allGone: (() => void) | undefined
  #fail: (error: ConfigError) => void = () => {}

  constructor(options: WorkerProcessesOptions) {
    this.#options = options
  }

  /** Forks all workers. The promise resolves only if they can never serve. */
  start(): Promise<ConfigError> {
    cluster.setupPrimary({ execArgv: [...process.execArgv, youngGeneration] })
    return new Promise((resolve) => {
      this.#fail = resolve
      for (let i = 0; i < this.#options.count; i += 1) this.#fork()
    })
  }

  post(workerId: number, message: PrimaryMessage): void {
    this.#running.get(workerId)?.outbox.post(message)
  }

  postAll(message: PrimaryMessage): void {
    for (const { outbox } of this.#running.values()) outbox.post(message)
  }

  /**
   * Resolves when every worker has exited, with false if one that had served left work unfinished. Kills the
   * remaining workers after the given time.
   */
  async drain(msMax: number): Promise<boolean> {
    this.#draining = true
    for (const timer of this.#respawns) clearTimeout(timer)
    if (this.#running.size === 0) return true
    const gone = new Promise<void>((resolve) => {
      this.#allGone = resolve
    })
    for (const { outbox } of this.#running.values()) outbox.post({ type: 'drain' })
    const timer = setTimeout(() => {
      this.#options.log.warn(
        { workers: this.#running.size },
        'workers did not exit in time; killing them',
      )
      for (const { worker } of this.#running.values()) worker.process.kill('SIGKILL')
    }, msMax)
    await gone
    clearTimeout(timer)
    return this.#haveAllLeft
  }

  #fork(): void {
    const { clock, log, onMessages } = this.#options
    const worker = cluster.fork(this.#options.env)
    closeUntaken(worker)
    const outbox = createOutbox<PrimaryMessage>({
      send: (batch, done) => {
        if (worker.isConnected()) worker.send(batch, done)
        else done(null)
      },
      // To a worker that is stalled, one such message says as much as many.
      droppable: ({ type }) => type === 'configured',
      dropped: { type: 'configured' },
    })
    const startedAtMs = clock.nowMs()
    this.#running.set(worker.id, { worker, outbox, startedAtMs, isReady: false })
    worker.on('message', (value: unknown) => {
      const messages = readBatch<WorkerMessage>(value)
      const ready = messages.find((message) => message.type === 'ready')
      if (ready !== undefined) this.#ready(worker, ready.url)
      onMessages(worker.id, messages)
    })
    worker.on('error', (error) =>
      log.warn({ err: error, worker: worker.id }, 'worker channel failed'),
    )
    worker.on('exit', (code, signal) => this.#exited(worker, code, signal))
  }

  #ready(worker: Worker, url: string): void {
    const { log, count } = this.#options
    log.info({ worker: worker.id, workerPid: worker.process.pid, url }, 'worker is ready')
    if (!this.#everReady) log.info({ url, workers: count }, 'node is ready')
    this.#everReady = true
    const running = this.#running.get(worker.id)
    if (running !== undefined) running.isReady = true
    this.#options.onReady(url)
  }

  #exited(worker: Worker, code: number | null, signal: string | null): void {
    const { clock, log, onExit } = this.#options
    const { startedAtMs = 0, isReady = false } = this.#running.get(worker.id) ?? {}
    this.#running.delete(worker.id)
    onExit(worker.id, code === 0 ? 'left' : 'died')
    if (this.#draining && code !== 0 && isReady) {
      log.warn({ worker: worker.id, code, signal }, 'worker exited with unfinished work')
      this.#haveAllLeft = false
    }
    if (this.#running.size === 0) this.#allGone?.()
    if (this.#draining) return
    if (code === cannotListenExitCode && !this.#everReady) {
      this.#fail(new ConfigError('ROUSE_PORT', 'cannot be bound; see the log of the workers'))
      return
    }
    const livedMs = clock.nowMs() - startedAtMs
    this.#respawnMs =
      livedMs >= healthyMs ? respawnMsMin : Math.min(this.#respawnMs * 2, respawnMsMax)
    const inMs = this.#respawnMs
    log.warn({ worker: worker.id, code, signal, inMs }, 'worker exited; restarting it')
    const timer = setTimeout(() => {
      this.#respawns.delete(timer)
      this.#fork()
    }, inMs)
    this.#respawns.add(timer)
  }
}
