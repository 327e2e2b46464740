// The cluster's members according to the database: each node writes its own row every ten seconds and reads
// the rows of the others. Gossip finds its peers here. If a node writes its row but gossip cannot reach it,
// gossip is broken.

import {
  exchangeNodes,
  type NodeExchange,
  type NodeRecord,
  type Original,
  removeNode,
  type SeenNode,
} from '@rouse/storage'
import type pg from 'pg'
import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'
import type { Service } from '../scheduler/service.ts'

const roundMs = 10_000
/** A node counts as alive even if it misses two rounds. */
const freshMs = 3 * roundMs
/** The interval while the URL of a node is not known, or while another process may use our id. */
const unsettledMs = 500
const deadMs = 3_600_000

export interface NodeRegistryOptions {
  readonly pool: pg.Pool
  readonly clock: Clock
  readonly log: Logger
  /** The content of our row, read again in every round. */
  readonly own: () => NodeRecord
  /** Called in every round. `copyOf`: this database is a copy that was not adopted. */
  readonly onNodes: (others: readonly SeenNode[], copyOf: Original | undefined) => void
  /** Called once, when a living process that started later uses our id. */
  readonly onSuperseded: (by: SeenNode) => void
}

export interface NodeRegistry extends Service {
  /** The nodes as of the last round, with the current age of their rows. */
  others(): readonly SeenNode[]
  /** Without `leave` our row stays, and the other nodes consider us missing until it expires. */
  stop(how?: { readonly leave: boolean }): Promise<void>
  /** Writes our row, which has changed, without waiting for the next round. */
  rewrite(): void
  /** Gossip reports a later process with our id. The registry reads the database soon to confirm that. */
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
      if (running) onNodes(others, exchange.copyOf)
    } catch (error) {
      // Keeps the last result: nodes may be alive although the database is unavailable.
      if (running && !failing) {
        log.warn({ reason: (error as Error).message }, 'could not update the node registry')
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
      // Peers repeat the report, even while this process is already draining because of it.
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
    async stop({ leave } = { leave: true }) {
      if (!running) return
      running = false
      clearTimeout(timer)
      await round
      if (leave) await removeNode(pool, own(), deadMs).catch(() => {})
    },
  }
}

/** Adds the time since the rows were read to their age. */
function later(nodes: readonly SeenNode[], byMs: number): SeenNode[] {
  return nodes.map((node) => ({ ...node, silentMs: node.silentMs + byMs }))
}

/**
 * Detects a process that uses our id and started later. Its row alone proves nothing: if the database was
 * restored from a backup, the process of the row may have ended long ago. A row that was written after ours
 * proves that the process has run at the same time as this one.
 */
class DuplicateNodeDetector {
  found = false
  /** By the database's clock: when we last wrote our row, or the first round if we could never write it. */
  #sinceMs: number | undefined

  /** Reports a conflict once. */
  find({ atMs, namesake }: NodeExchange): SeenNode | undefined {
    if (namesake === undefined) this.#sinceMs = atMs
    this.#sinceMs ??= atMs
    if (this.found || namesake === undefined) return undefined
    this.found = atMs - namesake.silentMs > this.#sinceMs
    return this.found ? namesake : undefined
  }
}
