// What `rouse top` shows: the rates of the cluster, its nodes, and its queues, the worst first. The rows of the
// screen are shared out: the queues get what the rest leaves.
import colors from 'picocolors'
import type { Json } from '../api.ts'
import { absence, ago } from '../format.ts'
import { compact, formatQueues, rate } from './queue-table.ts'
import { formatTable, widthDefault } from './table.ts'

export interface ClusterView {
  readonly cluster: Json
  readonly queues: readonly Json[]
  /** What was pushed and completed in each of the last seconds, if the node knows. */
  readonly series: Json
  readonly atMs: number
}

const historyMax = 30
const trendWidth = 20
const nodesMax = 8

export class TopScreen {
  readonly #url: string
  /** The pushes per second of each queue, the newest last. */
  #history = new Map<string, number[]>()
  #view: ClusterView | undefined
  #before: ClusterView | undefined

  constructor(url: string) {
    this.#url = url
  }

  add(view: ClusterView): void {
    this.#before = this.#view
    this.#view = view
    // Queues that no longer exist are forgotten.
    this.#history = new Map(
      view.queues.map(({ queue, pushedPerSecond = 0 }) => {
        const before = this.#history.get(queue) ?? []
        return [queue, [...before, pushedPerSecond].slice(-historyMax)]
      }),
    )
  }

  /** Without `rows` nothing is left out. */
  lines({
    columns = widthDefault,
    rows = Infinity,
  }: {
    columns?: number | undefined
    rows?: number | undefined
  }): string[] {
    const view = this.#view
    if (view === undefined) return [colors.dim('waiting for the first answer; q or Ctrl-C to quit')]
    const head = [...this.#head(view, columns), '', ...this.#nodes(view, columns), '']
    const footer = rows === Infinity ? [] : [colors.dim('q or Ctrl-C to quit')]
    const room = Math.max(2, rows - head.length - footer.length)
    return [...head, ...this.#queues(view, columns, room), ...footer].slice(0, rows)
  }

  #head({ cluster, queues, series }: ClusterView, columns: number): string[] {
    const { totals, unreachable } = cluster
    const bad = queues.filter(({ state }) => state === 'held' || state === 'no_consumers').length
    const parts = [
      colors.bold('rouse'),
      this.#url,
      totals.nodes === 1 ? '1 node' : `${totals.nodes} nodes`,
      queues.length === 1 ? '1 queue' : `${queues.length} queues`,
      bad === 0 ? '' : colors.red(`${bad} in trouble`),
      `${totals.waiting} waiting`,
    ]
    const width = Math.min(30, Math.max(10, Math.floor((columns - 40) / 2)))
    const line = (label: string, field: string, values: number[] | undefined): string => {
      const now = queues.reduce((sum, one) => sum + (one[field] ?? 0), 0)
      const bars = values === undefined ? '' : `  ${sparkline(values, width)}`
      return `${label} ${(rate(now) ?? '–').padStart(6)}/s${colors.cyan(bars)}`
    }
    return [
      parts.filter(Boolean).join('  '),
      [
        line('in', 'pushedPerSecond', series?.pushed),
        line('out', 'completedPerSecond', series?.completed),
      ].join('   '),
      ...unreachable.map((node: Json) => colors.red(absence(node))),
    ]
  }

  #nodes({ cluster, atMs }: ClusterView, columns: number): string[] {
    const known = new Map<string, number>(
      (this.#before?.cluster.nodes ?? []).map(({ node, requests }: Json) => [node, requests]),
    )
    const seconds = (atMs - (this.#before?.atMs ?? atMs)) / 1_000
    const perSecond = ({ node, requests }: Json): string | undefined => {
      const before = known.get(node)
      if (before === undefined || seconds === 0) return undefined
      // A node that was restarted counts from zero.
      return rate(Math.max(0, requests - before) / seconds)
    }
    const { nodes } = cluster
    const lines = formatTable<Json>(
      nodes.slice(0, nodesMax),
      [
        { title: 'NODE', value: ({ node }) => node, widthMin: 10 },
        {
          title: 'MODE',
          value: ({ mode }) => mode.mode,
          paint: ({ mode }) => (mode.mode === 'healthy' ? undefined : colors.yellow),
        },
        { title: 'UP', align: 'right', widthLeast: 6, value: ({ uptime }) => ago(uptime * 1_000) },
        { title: 'WAITING', align: 'right', value: ({ waiting }) => waiting.total },
        { title: 'REQUESTS', align: 'right', value: ({ requests }) => compact(requests) },
        { title: 'REQ/s', align: 'right', widthLeast: 6, value: perSecond },
        { title: 'QUERIES/s', align: 'right', value: queriesOf },
      ],
      columns,
    )
    const more = nodes.length - nodesMax
    return more > 0 ? [...lines, colors.dim(`… ${more} more nodes`)] : lines
  }

  #queues({ queues }: ClusterView, columns: number, room: number): string[] {
    if (queues.length === 0) return ['no queues yet']
    const lines = formatQueues(queues, columns, {
      title: 'IN, LAST 30 s',
      value: ({ queue }) => sparkline(this.#history.get(queue) ?? [], trendWidth),
      paint: () => colors.cyan,
    })
    if (lines.length <= room) return lines
    return [...lines.slice(0, room - 1), colors.dim('… more queues: rouse queues lists all')]
  }
}

function queriesOf({ queries_per_second: rates }: Json): string | undefined {
  if (rates === undefined) return undefined // a node that does not answer
  const all = Object.values(rates as Record<string, number>)
  return rate(all.reduce((sum, one) => sum + one, 0))
}

const bars = '▁▂▃▄▅▆▇█'

/** The last values as bars, the newest on the right; the highest bar is the maximum. */
function sparkline(values: readonly number[], width: number): string {
  const shown = values.slice(-width)
  const top = Math.max(...shown, 0)
  const text = shown.map((value) => {
    const level = top === 0 ? 0 : Math.ceil((value / top) * (bars.length - 1))
    return bars[Math.max(0, level)]
  })
  return text.join('').padStart(width)
}
