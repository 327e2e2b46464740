// One run on its own cluster: load, scheduled faults, healing, draining, and an audit of the tables. The
// result is a history; the checkers evaluate it.
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createPool } from '@rouse/database'
import { type Random, seededRandom } from '@rouse/testkit'
import { ChaosClient, type ClientUrls } from '../clients/chaos-client.ts'
import { Clients } from '../clients/clients.ts'
import {
  type ChaosCluster,
  type ChaosClusterOptions,
  startChaosCluster,
} from '../cluster/chaos-cluster.ts'
import { monotonicMs } from '../history/clock.ts'
import { HistoryWriter } from '../history/history-writer.ts'
import type { FaultRecord, QueueRecord } from '../history/records.ts'
import { nemeses } from '../nemeses/nemeses.ts'
import { queueRecord, type Workload } from '../workloads/workload.ts'
import { audit, leftCount, leftovers } from './audit.ts'
import { startCommitProbe } from './commit-probe.ts'
import { prepareQueues } from './prepare-queues.ts'
import { Progress } from './progress.ts'
import { type ScheduleOptions, type Step, schedule } from './schedule.ts'

export interface RunOptions
  extends Pick<
    ChaosClusterOptions,
    'standby' | 'nodeEnv' | 'afterMigrate' | 'durable' | 'faultyDisk' | 'postgresMajor'
  > {
  readonly seed: number
  readonly workloads: readonly Workload[]
  readonly rate: number
  /** Overrides `rate` for some workloads. */
  readonly rates?: Readonly<Record<string, number>>
  /**
   * The time for faults, counted from the end of the warm-up. A fault that would end later is not injected.
   * If each fault is injected once, the load ends when no fault is left.
   */
  readonly seconds: number
  /**
   * The least number of messages to store per workload: the producers of the workload continue after the
   * faults until that number is reached.
   */
  readonly messagesMin?: Readonly<Record<string, number>>
  readonly warmUpSeconds: number
  readonly faults: ScheduleOptions
  /** The time limit for a push to wake an idle waiter. */
  readonly wakeMsMax: number
  readonly drainSecondsMax: number
  readonly print: (line: string) => void
  /** Called every second, with a status line to overwrite. */
  readonly progress: (line: string) => void
}

const pollMs = 500

/** Resolves with the files of the history once everything has stopped. */
export async function makeHistory(folder: string, options: RunOptions): Promise<string[]> {
  const { seed, workloads, rate, print } = options
  const random = seededRandom(seed)
  const historyFile = join(folder, 'history-harness.ndjson')
  const writer = new HistoryWriter(historyFile)
  const cluster = await startChaosCluster({ ...options, folder, log: print })
  const urls = { balancer: cluster.clientUrl, nodes: cluster.nodeUrls, sql: cluster.sqlUrl }
  let clients: Clients | undefined
  try {
    for (const queue of queueRecords(options)) writer.note(queue)
    await prepareQueues(cluster.clientUrl, workloads)
    const { rates = {} } = options
    clients = new Clients({ folder, workloads, urls, seed, rate: (name) => rates[name] ?? rate })
    cluster.clients = clients
    const progress = new Progress(clients, options.progress)
    const nemesisClient = clientOfNemeses(urls, writer, seed)
    try {
      await runFaults({ cluster, clients, nemesisClient, writer, random, progress, options })
      progress.phase('healing')
      await cluster.heal()
      progress.phase('producing the remaining messages')
      await produced(clients, options)
      progress.phase('draining')
      await clients.stopProducing()
      await drain({ cluster, clients, progress }, options.drainSecondsMax)
    } finally {
      progress.stop()
      await nemesisClient.close()
    }
    await clients.stop()
    clients.throwIfCrashed()
    writer.note(await withPool(cluster, audit))
    return [historyFile, ...clients.historyFiles]
  } finally {
    await clients?.stop()
    writer.close()
    await cluster.stop()
  }
}

interface Faults {
  readonly cluster: ChaosCluster
  readonly clients: Clients
  readonly nemesisClient: ChaosClient
  readonly writer: HistoryWriter
  readonly random: Random
  readonly progress: Progress
  readonly options: RunOptions
}

async function runFaults(faults: Faults): Promise<void> {
  const { clients, writer, random, progress, options } = faults
  progress.phase('warming up')
  await delay(options.warmUpSeconds * 1_000)
  const endMs = monotonicMs() + options.seconds * 1_000
  const { eachOnce } = options.faults
  for (const step of schedule(options.faults, random)) {
    progress.phase('no fault')
    const isLate = monotonicMs() + (step.gapSeconds + step.seconds) * 1_000 > endMs
    if (isLate && !eachOnce) break
    await delay(isLate ? 0 : step.gapSeconds * 1_000)
    progress.phase(step.fault)
    const fault = isLate ? leftOut(step, 'time') : await makeFault(faults, step)
    writer.note(fault)
    if (fault.skipped === undefined) progress.faults += 1
    clients.throwIfCrashed()
  }
  progress.phase('no fault')
  if (!eachOnce) await delay(Math.max(0, endMs - monotonicMs()))
}

function leftOut({ fault: name }: Step, lacks: string): FaultRecord {
  const now = monotonicMs()
  return {
    kind: 'fault',
    name,
    start: now,
    end: now,
    target: '',
    forgetsLeases: false,
    skipped: lacks,
  }
}

async function makeFault(
  { cluster, nemesisClient: client, random, options }: Faults,
  step: Step,
): Promise<FaultRecord> {
  const { fault: name, seconds } = step
  const nemesis = nemeses.find((one) => one.name === name)
  if (nemesis === undefined) throw new Error(`unknown fault ${name}`)
  const { forgetsLeases, isLocal } = nemesis
  const lacks = await nemesis.lacks(cluster)
  if (lacks !== undefined) return leftOut(step, lacks)
  const queues = queueRecords(options)
  const probe = isLocal ? await startCommitProbe(cluster.postgres.url) : undefined
  const record = { kind: 'fault', name, start: monotonicMs(), forgetsLeases } as const
  try {
    const made = await nemesis.run(cluster, {
      random: () => random.next(),
      seconds,
      client,
      queues,
    })
    const end = monotonicMs()
    const slowCommits = await probe?.stop()
    return { ...record, end, ...made, ...(slowCommits === undefined ? {} : { slowCommits }) }
  } catch (error) {
    // On a busy machine a node may take longer to return than the nemesis waits.
    options.print(`${name}: ${(error as Error).message}`)
    await probe?.stop()
    await cluster.heal()
    return { ...record, end: monotonicMs(), target: 'not healed in time' }
  }
}

/**
 * The client of faults that push and pop themselves. Its signals never abort, because the calls of a fault
 * end by themselves.
 */
function clientOfNemeses(urls: ClientUrls, writer: HistoryWriter, seed: number): ChaosClient {
  const { signal } = new AbortController()
  return new ChaosClient({
    name: 'nemesis',
    workload: 'nemesis',
    seed,
    rate: 1,
    urls,
    writer,
    producing: signal,
    consuming: signal,
    onEnded: () => {},
  })
}

function queueRecords({ workloads, wakeMsMax }: RunOptions): QueueRecord[] {
  return workloads.flatMap(({ name, queues }) =>
    queues.map((queue) => queueRecord(name, queue, wakeMsMax)),
  )
}

async function produced(
  clients: Clients,
  { workloads, messagesMin = {} }: RunOptions,
): Promise<void> {
  const isShort = (): boolean => {
    const { pushedTo } = clients.counts
    return workloads.some(({ name }) => (pushedTo[name] ?? 0) < (messagesMin[name] ?? 0))
  }
  while (isShort()) {
    clients.throwIfCrashed()
    await delay(pollMs)
  }
}

/**
 * Waits until two checks in a row find nothing left to deliver, because a leased message becomes visible only
 * when its lease ends.
 */
async function drain(
  { cluster, clients, progress }: Pick<Faults, 'cluster' | 'clients' | 'progress'>,
  secondsMax: number,
): Promise<void> {
  const deadline = monotonicMs() + secondsMax * 1_000
  let empty = 0
  while (empty < 2 && monotonicMs() < deadline) {
    const left = leftCount(await withPool(cluster, leftovers))
    progress.left = left
    clients.throwIfCrashed()
    empty = left === 0 ? empty + 1 : 0
    await delay(pollMs)
  }
}

async function withPool<Result>(
  { sqlUrl }: ChaosCluster,
  work: (pool: ReturnType<typeof createPool>) => Promise<Result>,
): Promise<Result> {
  const pool = createPool({ url: sqlUrl, max: 1, applicationName: 'rouse chaos' })
  try {
    return await work(pool)
  } finally {
    await pool.end()
  }
}
