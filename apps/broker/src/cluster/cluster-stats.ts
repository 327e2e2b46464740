// One node's view of the cluster: its own stats, and the stats that it requests from the other nodes.

type NodeStats = Readonly<Record<string, unknown>>

interface Peer {
  readonly id: string
  readonly state: string
  readonly url?: string | null
  readonly heardAgoMs?: number
  readonly wroteAgoMs?: number | null
}

/** A healthy node answers faster than this. The user waits for the slowest node, so the limit is short. */
const answerMsMax = 1_000

/** The body of `GET /api/v1/nodes`, taken from a node's own `/stats`. */
export function describeNodes(stats: NodeStats): { readonly nodes: readonly NodeStats[] } {
  const { node, url, uptime, workers, version, gossip, mode } = stats
  const self = { id: node, self: true, state: 'alive', url, version, gossip: addressOf(gossip) }
  const peers = peersOf(stats).map(({ address, ...peer }: Peer & { address?: string }) => {
    return { ...peer, self: false, gossip: address }
  })
  const nodes = [{ ...self, uptime, workers, mode: (mode as NodeStats).mode }, ...peers]
  return { nodes: nodes.sort((a, b) => String(a.id).localeCompare(String(b.id))) }
}

/** The body of `GET /stats?scope=cluster`: the stats of every node, and totals. */
export async function clusterStats(
  own: NodeStats,
  ask: (url: string) => Promise<unknown>,
): Promise<NodeStats> {
  const { answers, unreachable } = await askPeers(own, async (url) => readStats(await ask(url)))
  const nodes = [own, ...answers]
  return {
    scope: 'cluster',
    node: own.node,
    nodes: nodes.sort((a, b) => String(a.node).localeCompare(String(b.node))),
    unreachable,
    totals: {
      nodes: nodes.length,
      local_sidecars: total(nodes, 'local_sidecars'),
      waiting: nodes.reduce((sum, { waiting }) => sum + Number((waiting as NodeStats).total), 0),
      requests: total(nodes, 'requests'),
      wakes: addUp(nodes.map(({ wakes }) => wakes as NodeStats)),
      queries_per_second: addUp(nodes.map((node) => node.queries_per_second as NodeStats)),
    },
  }
}

/** Asks all other nodes at the same time. `own`: this node's `/stats`. */
export async function askPeers<Answer>(
  own: NodeStats,
  ask: (url: string) => Promise<Answer>,
): Promise<{ readonly answers: Answer[]; readonly unreachable: NodeStats[] }> {
  // Nodes that left are omitted. A dead node is listed as unreachable without a request, which would only
  // time out.
  const peers = peersOf(own).filter(({ state }) => state !== 'left')
  const answers: Answer[] = []
  const unreachable: NodeStats[] = []
  await Promise.all(
    peers.map(async (peer) => {
      const { id, url, state, heardAgoMs } = peer
      try {
        if (isGone(peer)) throw new Error(`no gossip from it for ${seconds(heardAgoMs)} s`)
        if (!url) throw new Error('its address is not known yet')
        answers.push(await ask(url))
      } catch (error) {
        unreachable.push({ id, url, state, error: (error as Error).message })
      }
    }),
  )
  return { answers, unreachable }
}

/** The nodes that can be asked, and where. `own`: this node's `/stats`. */
export function reachablePeers(own: NodeStats): Map<string, string> {
  const peers = peersOf(own).filter((peer) => peer.state !== 'left' && !isGone(peer))
  return new Map(peers.flatMap(({ id, url }): [string, string][] => (url ? [[id, url]] : [])))
}

/** A node that has not written its row for this long is not live. It writes every 10 s. */
const liveMsMax = 25_000

/** The nodes that write their rows, with this one. It does not depend on UDP. */
export function countLive(peers: readonly Pick<Peer, 'wroteAgoMs'>[]): number {
  return 1 + peers.filter(({ wroteAgoMs }) => (wroteAgoMs ?? liveMsMax) < liveMsMax).length
}

/** Whether the node is dead. A node that only gossip cannot reach still writes its row in the database. */
function isGone({ state, heardAgoMs = 0, wroteAgoMs }: Peer): boolean {
  return state === 'dead' && (wroteAgoMs ?? Number.POSITIVE_INFINITY) >= heardAgoMs
}

/** `authorization` returns the credential of this node. */
export function askingAs(authorization: () => string): (url: string) => Promise<unknown> {
  return (url) => fetchFrom(`${url}/stats`, authorization())
}

/** Every request between nodes. */
export async function fetchFrom(url: string, authorization: string): Promise<unknown> {
  const signal = AbortSignal.timeout(answerMsMax)
  try {
    const response = await fetch(url, { signal, headers: { authorization } })
    if (!response.ok) throw new Error(`it answered ${response.status}`)
    return await response.json()
  } catch (error) {
    throw signal.aborted ? new Error(`no answer within ${answerMsMax / 1_000} s`) : error
  }
}

/** The fields that are added up here or that clients rely on. */
const expected: Readonly<Record<string, (value: unknown) => boolean>> = {
  node: (value) => typeof value === 'string',
  local_sidecars: isNumber,
  requests: isNumber,
  wakes: isRecord,
  queries_per_second: isRecord,
  mode: isRecord,
  peers: Array.isArray,
  waiting: (value) => isRecord(value) && isNumber(value.total),
  group_backoff: (value) => isRecord(value) && isListOfGroups(value.groups),
}

/** Checks the fields, because the address may belong to another version, a proxy or another server. */
function readStats(answer: unknown): NodeStats {
  if (!isRecord(answer)) throw new Error('it did not respond like a Rouse node')
  const odd = Object.entries(expected).filter(([name, fits]) => !fits(answer[name]))
  if (odd.length === 0) return answer
  throw new Error(`it did not respond like a Rouse node: ${odd.map(([name]) => name).join(', ')}`)
}

function isListOfGroups(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((group) => {
      return isRecord(group) && typeof group.key === 'string' && isNumber(group.waiting)
    })
  )
}

function isRecord(value: unknown): value is NodeStats {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function peersOf(stats: NodeStats): readonly Peer[] {
  return stats.peers as readonly Peer[]
}

function seconds(ms = 0): number {
  return Math.round(ms / 1_000)
}

function addressOf(gossip: unknown): unknown {
  return (gossip as NodeStats).address
}

function total(nodes: readonly NodeStats[], field: string): number {
  return nodes.reduce((sum, node) => sum + Number(node[field]), 0)
}

/** Adds up numbers by name. Ignores other values. */
function addUp(records: readonly NodeStats[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) {
      if (typeof value === 'number') sums[name] = (sums[name] ?? 0) + value
    }
  }
  return sums
}
