// What the nodes of the cluster report about this second, as `rates` and `groups` events show it.
import { shownGroup } from '@rouse/protocol'
import type { GroupStats } from '@rouse/shared-state'
import type { QueueFigures } from '@rouse/storage'
import {
  activityOf,
  addRates,
  type NodeStats,
  noRate,
  type QueueActivity,
  waitingFor,
} from '../../cluster/queue-activity.ts'
import { stateOf } from '../../routes/resources/queues.ts'
import type { QueueFilter } from './queue-filter.ts'

export interface ClusterView {
  readonly at: string
  readonly node: string
  readonly nodes: readonly ViewedNode[]
  readonly unreachable: readonly { readonly id: string; readonly error: string }[]
  readonly activity: QueueActivity
  /** Undefined while the database does not answer. */
  readonly figures: readonly QueueFigures[] | undefined
}

interface ViewedNode extends NodeStats {
  readonly node: string
  readonly mode: { readonly mode: string; readonly why: readonly string[] }
  readonly group_backoff: { readonly groups: readonly GroupStats[] }
}

const queuesShownMax = 50
const groupsShownMax = 200

/** `stats`: the body of `/stats?scope=cluster`. */
export function viewOf(
  stats: Readonly<Record<string, unknown>>,
  figures: readonly QueueFigures[] | undefined,
  atMs: number,
): ClusterView {
  const nodes = stats.nodes as readonly ViewedNode[]
  const unreachable = stats.unreachable as readonly Readonly<Record<string, unknown>>[]
  return {
    at: new Date(atMs).toISOString(),
    node: String(stats.node),
    nodes,
    unreachable: unreachable.map(({ id, error }) => ({ id: String(id), error: String(error) })),
    activity: activityOf(nodes),
    figures,
  }
}

/** The state of every queue, by name. */
export function statesOf({ figures = [], activity }: ClusterView): Map<string, string> {
  return new Map(
    figures.map((one) => {
      return [one.queue, stateOf(one, activity)]
    }),
  )
}

export function ratesOf(view: ClusterView, filter: QueueFilter): Record<string, unknown> {
  const { at, node, nodes, unreachable, activity, figures } = view
  const seen = figures?.filter(({ queue }) => filter.sees(queue))
  const byName = new Map(seen?.map((one) => [one.queue, one]))
  const rates = [...activity.rates.values()].filter(({ queue }) => filter.sees(queue))
  let total = noRate
  for (const rate of rates) total = addRates(total, rate)
  const waitingInAll = Object.values(activity.waiting).reduce((sum, count) => sum + count, 0)
  const waitingInSeen = () => {
    return (seen ?? []).reduce((sum, one) => sum + waitingFor(activity.waiting, one), 0)
  }
  return {
    at,
    node,
    nodes: nodes.length,
    unreachable: filter.seesNodes ? unreachable : [],
    total: {
      ...total,
      ready: sum(seen, 'ready'),
      leased: sum(seen, 'leased'),
      retrying: sum(seen, 'retrying'),
      scheduled: sum(seen, 'scheduled'),
      dead: sum(seen, 'dead'),
      oldestAgeMs: oldest(seen),
      queues: seen?.length ?? null,
      waiting: filter.isAll ? waitingInAll : waitingInSeen(),
    },
    queues: shownQueues(view, filter, byName).map((queue) => {
      const { queue: _, ...rate } = activity.rates.get(queue) ?? { queue, ...noRate }
      const { lastSecond: __, ...means } = rate
      return { queue, ...means, ...backlogOf(byName.get(queue), view) }
    }),
  }
}

/** Those that were asked for, then the busiest, then those with the largest backlog. */
function shownQueues(
  { activity }: ClusterView,
  filter: QueueFilter,
  figures: ReadonlyMap<string, QueueFigures>,
): string[] {
  const weight = (queue: string) => {
    const { pushedPerSecond, deliveredPerSecond, completedPerSecond } =
      activity.rates.get(queue) ?? noRate
    return pushedPerSecond + deliveredPerSecond + completedPerSecond
  }
  const backlog = (queue: string) => {
    const { ready = 0, leased = 0, retrying = 0 } = figures.get(queue) ?? {}
    return ready + leased + retrying
  }
  const active = [...activity.rates.keys()].filter((queue) => filter.sees(queue))
  const names = [...new Set([...active, ...figures.keys()])]
  const asked = filter.names.filter((queue) => filter.sees(queue))
  const others = names
    .filter((queue) => !asked.includes(queue) && weight(queue) + backlog(queue) > 0)
    .sort((a, b) => weight(b) - weight(a) || backlog(b) - backlog(a))
  return [...asked, ...others].slice(0, Math.max(queuesShownMax, asked.length))
}

function backlogOf(figures: QueueFigures | undefined, { activity }: ClusterView) {
  if (figures === undefined) {
    const none = { ready: null, leased: null, retrying: null, scheduled: null, dead: null }
    return { ...none, oldestAgeMs: null, waiting: null, state: null }
  }
  const { ready, leased, retrying, scheduled, dead, oldestAgeMs } = figures
  const waiting = waitingFor(activity.waiting, figures)
  const state = stateOf(figures, activity)
  return { ready, leased, retrying, scheduled, dead, oldestAgeMs, waiting, state }
}

export function groupsOf(view: ClusterView, filter: QueueFilter): Record<string, unknown> {
  const groups = view.nodes.flatMap(({ node, group_backoff: { groups: listed } }) => {
    return listed.flatMap(({ key, ...group }) => {
      const { queue, group: name } = readKey(key)
      const isSeen = queue === null ? filter.isAll : filter.sees(queue)
      return isSeen ? [{ node, key, queue, group: name, ...group }] : []
    })
  })
  groups.sort((a, b) => b.waiting - a.waiting)
  return {
    at: view.at,
    node: view.node,
    mode: filter.seesNodes ? view.nodes.map(modeOf) : [],
    groups: groups.slice(0, groupsShownMax),
  }
}

function modeOf({ node, mode }: ClusterView['nodes'][number]) {
  return { node, mode: mode.mode, why: mode.why }
}

/** The key of a wait group is `queue/partition/group`, or `namespace/…/task/…/group`. */
function readKey(key: string): { queue: string | null; group: string } {
  const parts = key.split('/').map(decode)
  const group = shownGroup(parts.at(-1) ?? '')
  return { queue: parts.length === 3 ? (parts[0] ?? null) : null, group }
}

function decode(part: string): string {
  return part.replace(/%(2A|2F|25)/g, (code) => decodeURIComponent(code))
}

type Count = 'ready' | 'leased' | 'retrying' | 'scheduled' | 'dead'

function sum(figures: readonly QueueFigures[] | undefined, field: Count): number | null {
  return figures?.reduce((total, one) => total + one[field], 0) ?? null
}

function oldest(figures: readonly QueueFigures[] | undefined): number | null {
  let age: number | null = null
  for (const { oldestAgeMs } of figures ?? []) {
    if (oldestAgeMs !== null) age = Math.max(age ?? 0, oldestAgeMs)
  }
  return age
}
