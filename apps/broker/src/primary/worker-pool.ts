// Forks the workers of a node, passes messages to and from them, and restarts them when they die.
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

/** Exit code of a worker that cannot listen. Restarting it would not help. */
export const cannotListenExitCode = 98

/** Exit code of a worker whose drain timed out or failed. Its unfinished statements may still commit. */
export const unfinishedExitCode = 97

/**
 * By default V8 lets the young generation of each worker grow to 48 MB and does not shrink it, and collects it with
 * several threads, whose waking costs more than they save on a small heap (docs/decisions/0026).
 */
const youngGeneration = ['--max-semi-space-size=8', '--no-parallel-scavenge']

/** Messages that are sent at regular intervals or for readers of stats, whatever the load is. */
const regularMessages = new Set<string>([
  'workerStats',
  'askStats',
  'askSeries',
  'stats',
  'metrics',
  'series',
  'keys',
  'keysUsed',
  'limitUse',
  'queueChanged',
  'watchEvents',
  'askEvents',
  'askTraces',
  'traces',
  'report',
  'ackedElsewhere',
  'events',
  'pastEvents',
])

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
  /** Called once, when the first worker listens. */
  readonly onReady: () => void
  /** A worker died, and another one is started. */
  readonly onRestart: (workerId: number, reason: string) => void
}

/** Receives the messages of the workers and is notified when one exits. */
export interface WorkerHost {
  handle(workerId: number, messages: readonly WorkerMessage[]): void
  workerGone(workerId: number, how: 'died' | 'left'): void
}

interface Running {
  readonly worker: Worker
  readonly outbox: Outbox<PrimaryMessage>
  readonly startedAtMs: number
  isReady: boolean
}

/** Counts what the primary and its workers send each other, without sends that carry only regularMessages. */
export interface IpcStats {
  readonly sends: number
  readonly messages: number
}

export class WorkerProcesses {
  readonly #options: WorkerProcessesOptions
  readonly #ipc = { sends: 0, messages: 0 }
  readonly #running = new Map<number, Running>()
  readonly #respawns = new Set<NodeJS.Timeout>()
  #respawnMs = respawnMsMin
  #everReady = false
  /** How often a worker was started again. */
  restarts = 0
  #draining = false
  #haveAllLeft = true
  #allGone: (() => void) | undefined
  #fail: (error: ConfigError) => void = () => {}

  constructor(options: WorkerProcessesOptions) {
    this.#options = options
  }

  /** Forks all workers. The promise resolves only if the port cannot be bound. */
  start(host: WorkerHost): Promise<ConfigError> {
    cluster.setupPrimary({ execArgv: [...process.execArgv, ...youngGeneration] })
    return new Promise((resolve) => {
      this.#fail = resolve
      for (let i = 0; i < this.#options.count; i += 1) this.#fork(host)
    })
  }

  ipcStats(): IpcStats {
    return { ...this.#ipc }
  }

  post(workerId: number, message: PrimaryMessage): void {
    this.#running.get(workerId)?.outbox.post(message)
  }

  postAll(message: PrimaryMessage): void {
    for (const { outbox } of this.#running.values()) outbox.post(message)
  }

  /**
   * Resolves when every worker has exited. The result is false if a worker that was ready left work
   * unfinished. Kills the remaining workers after the given time.
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

  #fork(host: WorkerHost): void {
    const { clock, log } = this.#options
    const worker = cluster.fork(this.#options.env)
    closeUntaken(worker)
    const outbox = createOutbox<PrimaryMessage>({
      send: (batch, done) => {
        this.#count(batch)
        if (worker.isConnected()) worker.send(batch, done)
        else done(null)
      },
      // Each of these messages only means "refresh your caches", so a stalled worker needs just one.
      droppable: ({ type }) => type === 'configured',
      dropped: { type: 'configured' },
    })
    const startedAtMs = clock.nowMs()
    this.#running.set(worker.id, { worker, outbox, startedAtMs, isReady: false })
    worker.on('message', (value: unknown) => {
      const messages = readBatch<WorkerMessage>(value)
      this.#count(messages)
      const ready = messages.find((message) => message.type === 'ready')
      if (ready !== undefined) this.#ready(worker, ready.url)
      host.handle(worker.id, messages)
    })
    worker.on('error', (error) =>
      log.warn({ err: error, worker: worker.id }, 'worker channel failed'),
    )
    worker.on('exit', (code, signal) => {
      this.#exited(host, worker, code, signal)
    })
  }

  #count(batch: readonly (PrimaryMessage | WorkerMessage)[]): void {
    const count = batch.filter(({ type }) => !regularMessages.has(type)).length
    if (count === 0) return
    this.#ipc.sends += 1
    this.#ipc.messages += count
  }

  #ready(worker: Worker, url: string): void {
    const { log, count } = this.#options
    log.info({ worker: worker.id, workerPid: worker.process.pid, url }, 'worker is ready')
    if (!this.#everReady) {
      log.info({ url, workers: count }, 'node is ready')
      this.#options.onReady()
    }
    this.#everReady = true
    const running = this.#running.get(worker.id)
    if (running !== undefined) running.isReady = true
  }

  #exited(host: WorkerHost, worker: Worker, code: number | null, signal: string | null): void {
    const { clock, log } = this.#options
    const { startedAtMs = 0, isReady = false } = this.#running.get(worker.id) ?? {}
    this.#running.delete(worker.id)
    host.workerGone(worker.id, code === 0 ? 'left' : 'died')
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
      this.restarts += 1
      this.#options.onRestart(worker.id, signal ?? `exit code ${code}`)
      this.#fork(host)
    }, inMs)
    this.#respawns.add(timer)
  }
}

/**
 * Closes connections that were on their way to a worker when the worker died. `node:cluster` sends a
 * connection over the worker's channel and closes its own copy when the worker confirms the connection. If
 * the worker is killed first, Node 20 and 22 keep the copy open permanently, and the client waits on a
 * connection that no process serves. SCHED_NONE makes no such copies, but distributes badly: of 1,000
 * sequential connections it gave one of four idle workers 523 and another 24, whereas round-robin gives each
 * worker 250.
 */
function closeUntaken(worker: Worker): void {
  const { process } = worker
  const untaken = new Map<unknown, Connection>()
  const send = process.send.bind(process) as (...args: unknown[]) => boolean
  process.send = (message: unknown, handle?: unknown, ...rest: unknown[]) => {
    const { act, seq } = (message ?? {}) as Handing
    if (act === 'newconn' && handle) untaken.set(seq, handle as Connection)
    return send(message, handle, ...rest)
  }
  // Runs after Node's own handler. If the worker rejected the connection, that handler has already sent it to
  // another worker under another number.
  process.on('internalMessage', ({ ack }: { readonly ack?: unknown }) => untaken.delete(ack))
  // Either event may come first, and Node still sends connections to the worker between the two.
  for (const event of ['exit', 'disconnect']) {
    process.on(event, () => {
      for (const connection of untaken.values()) connection.close()
      untaken.clear()
    })
  }
}

interface Connection {
  close(): void
}

/** The part of Node's internal protocol used here. If that protocol changes, nothing is tracked or closed. */
interface Handing {
  readonly act?: unknown
  readonly seq?: unknown
}
