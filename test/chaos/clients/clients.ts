// The client processes of a run: a few, each with clients of all workloads. A process may be killed at any
// time. A new process replaces it, and the clients of the new process have new names.
import { type ChildProcess, spawn } from 'node:child_process'
import { createWriteStream, type WriteStream } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Workload } from '../workloads/workload.ts'
import type { ClientUrls } from './chaos-client.ts'
import type { ClientCounts, ClientJob, FromClients, ToClients } from './client-messages.ts'

export interface ClientsOptions {
  readonly folder: string
  readonly workloads: readonly Workload[]
  readonly urls: ClientUrls
  readonly seed: number
  readonly rate: (workload: string) => number
}

interface Slot {
  readonly number: number
  readonly clients: readonly ClientJob['clients'][number][]
  generation: number
  child: ChildProcess
  exited: Promise<void>
  counts: ClientCounts
  /** Resolves when the producers of the process have ended. */
  produced: Promise<void>
}

const slotCount = 4
const root = fileURLToPath(new URL('../../..', import.meta.url))
const program = [
  `--import=${new URL('../../../scripts/typescript/register.mjs', import.meta.url).href}`,
  '--conditions=@rouse/source',
  fileURLToPath(new URL('client-process.ts', import.meta.url)),
]
/**
 * `env -i` clears the environment, including the variables that describe the IPC channel, so these are passed
 * explicitly.
 */
const environment = [
  `PATH=${process.env.PATH}`,
  'NODE_CHANNEL_FD=3',
  'NODE_CHANNEL_SERIALIZATION_MODE=json',
]
/** Longer than any wait of a client. */
const stopMsMax = 60_000

export class Clients {
  readonly #options: ClientsOptions
  readonly #slots: Slot[] = []
  readonly #log: WriteStream
  readonly #gone: ClientCounts = noCounts()
  readonly historyFiles: string[] = []
  #state: 'producing' | 'draining' | 'stopped' = 'producing'
  #crash: string | undefined

  constructor(options: ClientsOptions) {
    this.#options = options
    this.#log = createWriteStream(join(options.folder, 'clients.log'), { flags: 'a' })
    const shares = deal(options)
    for (const [number, clients] of shares.entries()) {
      this.#slots.push({ number, clients, generation: 0, ...this.#launch(number, clients, 0) })
    }
  }

  get counts(): ClientCounts {
    const all = [this.#gone, ...this.#slots.map(({ counts }) => counts)]
    return all.reduce((a, b) => sum(a, b))
  }

  /** A client that exits by itself is a defect of the harness, and invalidates the run. */
  throwIfCrashed(): void {
    if (this.#crash !== undefined) throw new Error(this.#crash)
  }

  /**
   * Kills a process with all its clients and starts a replacement. Resolves with a description of the target.
   */
  async killOne(random: () => number): Promise<string> {
    const slot = this.#slots[Math.floor(random() * this.#slots.length)]
    if (slot === undefined) throw new Error('there are no client processes to kill')
    const { pid } = slot.child
    slot.child.kill('SIGKILL')
    await slot.exited
    if (this.#state === 'stopped') return `client process ${pid}`
    Object.assign(this.#gone, sum(this.#gone, slot.counts))
    slot.generation += 1
    Object.assign(slot, this.#launch(slot.number, slot.clients, slot.generation))
    return `client process ${pid}`
  }

  /** Resolves when every push has its response. */
  async stopProducing(): Promise<void> {
    this.#state = 'draining'
    for (const { child } of this.#slots) send(child, { kind: 'stop-producing' })
    await Promise.all(this.#slots.map(({ produced, exited }) => Promise.race([produced, exited])))
  }

  /** Resolves when no client process is left. Idempotent. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    for (const { child } of this.#slots) send(child, { kind: 'stop' })
    const timer = setTimeout(() => {
      for (const { child } of this.#slots) child.kill('SIGKILL')
    }, stopMsMax)
    await Promise.all(this.#slots.map(({ exited }) => exited))
    clearTimeout(timer)
    this.#log.end()
  }

  #launch(number: number, clients: Slot['clients'], generation: number): Launched {
    const { folder, seed, urls } = this.#options
    const historyFile = join(folder, `history-${number}.${generation}.ndjson`)
    this.historyFiles.push(historyFile)
    // Starts Node through `env -i`, because tap would otherwise add its loaders to the process.
    const child = spawn('env', ['-i', ...environment, process.execPath, ...program], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    child.stdout?.pipe(this.#log, { end: false })
    child.stderr?.pipe(this.#log, { end: false })
    const job: ClientJob = { clients, generation, seed, urls, historyFile }
    send(child, { kind: 'job', job })
    const exited = new Promise<void>((resolve) => {
      child.once('exit', (code) => {
        if (code !== null && code !== 0)
          this.#crash = `client process exited with code ${code}; see clients.log`
        resolve()
      })
      child.once('error', (error) => {
        this.#crash = error.message
        resolve()
      })
    })
    const counts = noCounts()
    const produced = new Promise<void>((resolve) => {
      child.on('message', (message: FromClients) => {
        if (message.kind === 'counts') Object.assign(counts, message.counts)
        else resolve()
      })
    })
    if (this.#state === 'draining') send(child, { kind: 'stop-producing' })
    return { child, exited, counts, produced }
  }
}

type Launched = Pick<Slot, 'child' | 'exited' | 'counts' | 'produced'>

/**
 * Clients of a workload go to different processes, so that clients of every workload remain when a process is
 * killed.
 */
function deal({ workloads, rate }: ClientsOptions): Slot['clients'][] {
  const all = workloads.flatMap(({ name: workload, clients }) =>
    clients.map(({ name }) => ({ workload, name, rate: rate(workload) })),
  )
  return Array.from({ length: slotCount }, (_, slot) =>
    all.filter((_, i) => i % slotCount === slot),
  )
}

/** A process that is gone needs no message. */
function send(child: ChildProcess, message: ToClients): void {
  if (child.connected) child.send(message, () => {})
}

function noCounts(): ClientCounts {
  return { pushed: 0, pushedTo: {}, popped: 0, notOk: 0 }
}

function sum(a: ClientCounts, b: ClientCounts): ClientCounts {
  const pushedTo = { ...a.pushedTo }
  for (const [workload, pushed] of Object.entries(b.pushedTo)) {
    pushedTo[workload] = (pushedTo[workload] ?? 0) + pushed
  }
  return {
    pushed: a.pushed + b.pushed,
    pushedTo,
    popped: a.popped + b.popped,
    notOk: a.notOk + b.notOk,
  }
}
