// Who is in the cluster, by the word of the database: each node writes its row every few seconds and reads the others'.
// Gossip finds its peers here, and a node that writes but is not heard shows that gossip is broken.
import type pg from 'pg'
import type { Logger } from '../log.ts'
import type { Service } from '../services/service.ts'
import { exchangeNodes, type NodeRecord, removeNode, type SeenNode } from '../statements/nodes.ts'

const roundMs = 10_000
/** Two rounds may fail. */
const freshMs = 3 * roundMs
/** While a node has yet to say where it listens. */
const unsettledMs = 500
const deadMs = 3_600_000

export interface NodeDirectoryOptions {
  readonly pool: pg.Pool
  readonly log: Logger
  /** What our row says; asked anew in every round. */
  readonly own: () => NodeRecord
  readonly onNodes: (others: readonly SeenNode[]) => void
}

export interface NodeDirectory extends Service {
  others(): readonly SeenNode[]
  /** Our row has changed: does not wait for the next round. */
  rewrite(): void
}

export function createNodeDirectory(options: NodeDirectoryOptions): NodeDirectory {
  const { pool, log, own, onNodes } = options
  let others: readonly SeenNode[] = []
  let timer: NodeJS.Timeout | undefined
  let round: Promise<void> = Promise.resolve()
  let running = false
  let failing = false
  let replaced = false

  async function runRound(): Promise<void> {
    try {
      const exchange = await exchangeNodes(pool, own(), freshMs)
      if (!exchange.written && !replaced) {
        log.error({ id: own().id }, 'another process runs under the id of this node')
      }
      replaced = !exchange.written
      others = exchange.others
      failing = false
      if (running) onNodes(others)
    } catch (error) {
      // What was read last holds: a database that is away says nothing about who lives.
      if (running && !failing) {
        log.warn({ reason: (error as Error).message }, 'the list of nodes could not be read')
      }
      failing = true
    }
    clearTimeout(timer)
    if (running) timer = setTimeout(begin, isSettled() ? roundMs : unsettledMs)
  }

  function isSettled(): boolean {
    return others.every(({ httpUrl }) => httpUrl !== null)
  }

  function begin(): void {
    round = runRound()
  }

  return {
    others: () => others,
    rewrite() {
      clearTimeout(timer)
      if (running) round = round.then(runRound)
    },
    async start() {
      if (running) return
      running = true
      begin()
      await round
    },
    async stop() {
      if (!running) return
      running = false
      clearTimeout(timer)
      await round
      await removeNode(pool, own(), deadMs).catch(() => {})
    },
  }
}
