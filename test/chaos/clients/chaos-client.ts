// One client of a workload: its name, its recorded connections to the cluster, and the two signals that end
// its producing and consuming.
import { setTimeout as delay } from 'node:timers/promises'
import { Rouse } from '@rouse/client'
import { createPool } from '@rouse/database'
import { type Random, seededRandom } from '@rouse/testkit'
import type pg from 'pg'
import type { HistoryWriter } from '../history/history-writer.ts'
import type { CallRecord } from '../history/records.ts'
import { leaseMs } from '../workloads/workload.ts'
import { httpTransport } from './http-transport.ts'
import { RawClient } from './raw-client.ts'
import { Recorder } from './recorder.ts'
import { RecordingTransport } from './recording-transport.ts'
import type { Payload } from './wire-call.ts'

export interface ClientUrls {
  readonly balancer: string
  readonly nodes: readonly string[]
  readonly sql: string
}

export interface ChaosClientOptions {
  readonly name: string
  readonly workload: string
  readonly seed: number
  readonly rate: number
  readonly urls: ClientUrls
  readonly writer: HistoryWriter
  readonly producing: AbortSignal
  readonly consuming: AbortSignal
  readonly onEnded: (record: CallRecord) => void
}

const sqlConnections = 2

export class ChaosClient {
  readonly name: string
  readonly rate: number
  readonly random: Random
  readonly producing: AbortSignal
  readonly consuming: AbortSignal
  readonly recorder: Recorder
  readonly #urls: ClientUrls
  readonly #transport: RecordingTransport
  #sdk: Rouse<Record<string, Payload>> | undefined
  #pool: pg.Pool | undefined
  #values = 0

  constructor(options: ChaosClientOptions) {
    this.name = options.name
    this.rate = options.rate
    this.random = seededRandom(options.seed)
    this.producing = options.producing
    this.consuming = options.consuming
    this.#urls = options.urls
    const { name: process, workload, writer, onEnded } = options
    this.recorder = new Recorder({ process, workload, writer, onEnded })
    this.#transport = new RecordingTransport({
      base: httpTransport(),
      recorder: this.recorder,
      leaseMs,
    })
  }

  /** A value that no other message of the run has. */
  newValue(): string {
    this.#values += 1
    return `${this.name}:${this.#values}`
  }

  get nodeCount(): number {
    return this.#urls.nodes.length
  }

  /**
   * A client that connects through the balancer, or directly to one node. `node` is the index of the node,
   * from 0.
   */
  raw(node?: number): RawClient {
    const url = node === undefined ? this.#urls.balancer : this.#urls.nodes[node % this.nodeCount]
    return new RawClient(url ?? this.#urls.balancer, this.#transport, this.consuming)
  }

  /** The SDK, configured with all nodes. */
  sdk(): Rouse<Record<string, Payload>> {
    this.#sdk ??= new Rouse({
      urls: this.#urls.nodes,
      transport: this.#transport,
      timeout: '5s',
    })
    return this.#sdk
  }

  sql(): pg.Pool {
    this.#pool ??= createPool({
      url: this.#urls.sql,
      max: sqlConnections,
      applicationName: 'rouse chaos client',
    })
    return this.#pool
  }

  /** Waits, but ends early when the signal aborts. */
  async pause(ms: number, signal: AbortSignal): Promise<void> {
    await delay(ms, undefined, { signal }).catch(() => {})
  }

  async close(): Promise<void> {
    await this.#sdk?.close()
    this.#transport.close()
    await this.#pool?.end()
  }
}
