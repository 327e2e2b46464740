// The cluster's members according to the database: each node writes its row every few seconds and reads the
// others. Gossip finds its peers here, and a node that writes but is unreachable by gossip shows that gossip
// is broken.

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
/** Used until a node knows its addresses, and while another process may have taken our id. */
const unsettledMs = 500
const deadMs = 3_600_000

export interface NodeRegistryOptions {
  readonly pool: pg.Pool
  readonly clock: Clock
  readonly log: Logger
  /** The content of our row, read again in every round. */
  readonly own: () => NodeRecord
  readonly onNodes: (others: readonly SeenNode[]) => void
  /** Called once, when a living process that started later uses our id. */
  readonly onSuperseded: (by: SeenNode) => void
}

export interface NodeRegistry extends Service {
  /** The nodes as of the last round, with the current age of their rows. */
  others(): readonly SeenNode[]
  /** Without a leave message our row stays, and others count us as missing until it expires. */
  stop(how?: { readonly leave: boolean }): Promise<void>
  /** Our row has changed: writes it without waiting for the next round. */
  rewrite(): void
  /** Gossip reports a later process with our id. Only the database decides, so it is queried soon. */
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
      // Keeps the last result: an unavailable database says nothing about which nodes are alive.
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
      // Peers repeat the report, also about a process that is draining.
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

/** Adds the time since they were read to the age of the rows. */
function later(nodes: readonly SeenNode[], byMs: number): SeenNode[] {
  return nodes.map((node) => ({ ...node, silentMs: node.silentMs + byMs }))
}

/**
 * Detects a process that uses our id and started later. Its row alone proves nothing: in a database restored
 * from a backup the process may be long gone. A row that was written after ours proves that the process
 * lives, or lived beside us.
 */
class DuplicateNodeDetector {
  found = false
  /** When our row was last ours or, before that, when we first read it; by the database's clock. */
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
