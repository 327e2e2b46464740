// Who is in the cluster, by the word of the database: each node writes its row every few seconds and reads the others'.
// Gossip finds its peers here, and a node that writes but is not heard shows that gossip is broken.

import {
  exchangeNodes,
  type NodeExchange,
  type NodeRecord,
  removeNode,
  type SeenNode,
} from '@rouse/storage'
import type pg from 'pg'
import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'
import type { Service } from '../scheduler/service.ts'

const roundMs = 10_000
/** Two rounds may fail. */
const freshMs = 3 * roundMs
/** While a node has yet to say where it listens, or it is in doubt whether our id is still ours. */
const unsettledMs = 500
const deadMs = 3_600_000

export interface NodeRegistryOptions {
  readonly pool: pg.Pool
  readonly clock: Clock
  readonly log: Logger
  /** What our row says; asked anew in every round. */
  readonly own: () => NodeRecord
  readonly onNodes: (others: readonly SeenNode[]) => void
  /** A process that started later has our id, and lives. Told once. */
  readonly onSuperseded: (by: SeenNode) => void
}

export interface NodeRegistry extends Service {
  /** As of the last round, but for the time since they wrote. */
  others(): readonly SeenNode[]
  /** Without a goodbye our row stays, and others miss us until it is old. */
  stop(how?: { readonly goodbye: boolean }): Promise<void>
  /** Our row has changed: does not wait for the next round. */
  rewrite(): void
  /** Gossip says that a later process has our id. Only the database's word counts, and it is asked soon. */
  recheckIdentity(): void
}

export function createNodeRegistry(options: NodeRegistryOptions): NodeRegistry {
  const { pool, clock, log, own, onNodes, onSuperseded } = options
  let others: readonly SeenNode[] = []
  let readAtMs = clock.nowMs()
  let timer: NodeJS.Timeout | undefined
  let round: Promise<void> = Promise.resolve()
  let running = false
  let failing = false
  let inDoubt = false
  const namesakes = new DuplicateNodeDetector()

  async function runRound(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    inDoubt = false
    try {
      const exchange = await exchangeNodes(pool, own(), freshMs)
      const namesake = namesakes.find(exchange)
      if (namesake !== undefined) onSuperseded(namesake)
      others = exchange.others
      readAtMs = clock.nowMs()
      failing = false
      if (running) onNodes(others)
    } catch (error) {
      // What was read last holds: a database that is away says nothing about who lives.
      if (running && !failing) {
        log.warn({ reason: (error as Error).message }, 'the list of nodes could not be read')
      }
      failing = true
    }
    if (running) timer = setTimeout(begin, isSettled() ? roundMs : unsettledMs)
  }

  function isSettled(): boolean {
    return !inDoubt && others.every(({ httpUrl }) => httpUrl !== null)
  }

  function begin(): void {
    round = runRound()
  }

  return {
    others: () => later(others, clock.nowMs() - readAtMs),
    rewrite() {
      clearTimeout(timer)
      if (running) round = round.then(runRound)
    },
    recheckIdentity() {
      // Peers say it again and again, of a process that goes on draining, too.
      if (!running || inDoubt || namesakes.found) return
      inDoubt = true
      if (timer === undefined) return
      clearTimeout(timer)
      timer = setTimeout(begin, unsettledMs)
    },
    async start() {
      if (running) return
      running = true
      begin()
      await round
    },
    async stop({ goodbye } = { goodbye: true }) {
      if (!running) return
      running = false
      clearTimeout(timer)
      await round
      if (goodbye) await removeNode(pool, own(), deadMs).catch(() => {})
    },
  }
}

/** As they are so long after they were read. */
function later(nodes: readonly SeenNode[], byMs: number): SeenNode[] {
  return nodes.map((node) => ({ ...node, silentMs: node.silentMs + byMs }))
}

/**
 * Finds the process that has our id and started later. Its row alone proves nothing: on a database from a backup it may
 * be of a process long gone. One that wrote it since the row was ours lives, or has lived beside us.
 */
class DuplicateNodeDetector {
  found = false
  /** When our row was last our own, or, as long as it never was, when we first looked; by the database's clock. */
  #sinceMs: number | undefined

  /** Answers once. */
  find({ atMs, namesake }: NodeExchange): SeenNode | undefined {
    if (namesake === undefined) this.#sinceMs = atMs
    this.#sinceMs ??= atMs
    if (this.found || namesake === undefined) return undefined
    this.found = atMs - namesake.silentMs > this.#sinceMs
    return this.found ? namesake : undefined
  }
}
