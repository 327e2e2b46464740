// Reads the API keys for the workers of a node: every five seconds, when a worker has changed a key, and when
// another node announces a change. So all nodes reject a revoked key at once if gossip works, and within ten
// seconds if it does not.
import { type KeyTable, markKeysUsed, readKeyTable } from '@rouse/storage'
import type pg from 'pg'
import type { Clock } from '../clock.ts'
import { sharedReads } from '../encryption/encrypted-queue-cache.ts'
import type { WorkerMessage } from '../ipc.ts'
import type { Logger } from '../log.ts'
import type { WorkerProcesses } from './worker-pool.ts'

const everyMs = 5_000

export interface KeyReaderOptions {
  readonly pool: pg.Pool
  readonly log: Logger
  readonly clock: Clock
  readonly workers: Pick<WorkerProcesses, 'post' | 'postAll'>
  /** The number of live nodes of the cluster, with this one. */
  readonly liveNodes: () => number
  /** A worker of this node has changed a key: other nodes read the keys again. */
  readonly announce: () => void
  /** As read at the start. */
  readonly table: KeyTable
}

type KeyMessage = Extract<WorkerMessage, { readonly type: 'askKeys' | 'keysUsed' | 'limitUse' }>

export class KeyReader {
  readonly #options: KeyReaderOptions
  readonly #read = sharedReads(() => this.#readNow())
  #table: KeyTable
  #text: string
  #readAtMs: number
  #timer: NodeJS.Timeout | undefined
  #isFailing = false
  #writing: Promise<void> = Promise.resolve()

  constructor(options: KeyReaderOptions) {
    this.#options = options
    this.#table = options.table
    this.#text = JSON.stringify(options.table)
    this.#readAtMs = options.clock.nowMs()
  }

  /** Whether there has ever been a key. */
  get hasKeys(): boolean {
    return this.#table.hasKeys
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.#read(), everyMs)
  }

  /** Resolves when no statement runs any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writing
  }

  /** Another node has changed a key. */
  readAgain(): void {
    void this.#read()
  }

  received(workerId: number, message: KeyMessage): void {
    switch (message.type) {
      case 'askKeys':
        return this.#answer(workerId, message)
      case 'keysUsed':
        return this.#used(message.ids)
      case 'limitUse':
        return this.#options.workers.postAll({ ...message, workerId })
    }
  }

  /** Sends the keys to a worker. If they have changed, reads them first. */
  #answer(
    workerId: number,
    { id, haveChanged }: Extract<KeyMessage, { readonly type: 'askKeys' }>,
  ): void {
    const { workers, clock, liveNodes } = this.#options
    // The read may have failed. `ageMs` tells the worker how old the table is.
    const send = () => {
      const ageMs = clock.nowMs() - this.#readAtMs
      const nodes = liveNodes()
      workers.post(workerId, { type: 'keys', table: this.#table, ageMs, nodes, id })
    }
    if (!haveChanged) return send()
    this.#options.announce()
    void this.#read().then(send)
  }

  /** Stores the day on which keys were last used. If that fails, only this day is lost. */
  #used(ids: readonly string[]): void {
    const { pool, log } = this.#options
    this.#writing = this.#writing
      .then(() => markKeysUsed(pool, ids))
      .catch((error: unknown) => {
        log.debug({ reason: (error as Error).message }, 'could not store which keys were used')
      })
  }

  async #readNow(): Promise<void> {
    const { pool, log, workers, clock, liveNodes } = this.#options
    // The result may lack changes that are made during the read.
    const beganAtMs = clock.nowMs()
    try {
      this.#table = await readKeyTable(pool)
    } catch (error) {
      const reason = (error as Error).message
      if (!this.#isFailing) log.warn({ reason }, 'could not read the API keys')
      this.#isFailing = true
      return
    }
    this.#isFailing = false
    this.#readAtMs = beganAtMs
    const text = JSON.stringify(this.#table)
    const isNew = text !== this.#text
    this.#text = text
    const ageMs = clock.nowMs() - beganAtMs
    const table = isNew ? { table: this.#table } : {}
    workers.postAll({ type: 'keys', ageMs, nodes: liveNodes(), ...table })
  }
}
