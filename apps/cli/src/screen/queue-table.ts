// The figures of queues, the worst first. Where one line per queue does not fit, the state and names that are too
// long have lines of their own.
import colors from 'picocolors'
import type { Json } from '../api.ts'
import { ago } from '../format.ts'
import {
  formatTable,
  naturalWidth,
  type Paint,
  showCell,
  type TableColumn,
  widthDefault,
} from './table.ts'
import { cut, padEnd, widthOf } from './width.ts'

export function formatQueues(
  queues: readonly Json[],
  screenWidth = widthDefault,
  trend?: TableColumn<Json>,
): string[] {
  const sorted = worstFirst(queues)
  const columns = [nameColumn, ...figureColumns, stateColumn]
  const isWide = tableWidth(sorted, columns) <= screenWidth
  if (!isWide) return formatNarrow(sorted, screenWidth)
  const withTrend = trend === undefined ? columns : columns.toSpliced(-1, 0, trend)
  const fits = tableWidth(sorted, withTrend) <= screenWidth
  const [titles = '', ...lines] = formatTable(sorted, fits ? withTrend : columns, screenWidth)
  return [titles, ...lines.flatMap((line, i) => [...longName(sorted[i], screenWidth), line])]
}

/** One long name must not make the column of all names wide. */
const nameWidthMax = 48

/** The line with the name above the figures, if the name is too long for its column. */
function longName({ queue }: Json, screenWidth: number): string[] {
  const name = showCell(queue)
  return widthOf(name) > nameWidthMax ? [cut(name, screenWidth)] : []
}

function tableWidth(rows: readonly Json[], columns: readonly TableColumn<Json>[]): number {
  return columns.reduce((total, column) => total + naturalWidth(rows, column) + 2, -2)
}

const nameColumn: TableColumn<Json> = {
  title: 'QUEUE',
  value: ({ queue }) => (widthOf(showCell(queue)) > nameWidthMax ? ' ' : queue),
}

const figureColumns: readonly TableColumn<Json>[] = [
  { title: 'READY', align: 'right', value: ({ ready }) => compact(ready) },
  { title: 'LEASED', align: 'right', value: ({ leased }) => compact(leased) },
  {
    title: 'RETRYING',
    align: 'right',
    value: ({ retrying }) => compact(retrying),
    paint: ({ retrying }) => (retrying > 0 ? colors.yellow : undefined),
  },
  { title: 'SCHEDULED', align: 'right', value: ({ scheduled }) => compact(scheduled) },
  {
    title: 'DEAD',
    align: 'right',
    value: ({ dead }) => compact(dead),
    paint: ({ dead }) => (dead > 0 ? colors.red : undefined),
  },
  { title: 'CONSUMERS', align: 'right', value: ({ consumers }) => compact(consumers) },
  {
    title: 'IN/s',
    align: 'right',
    widthLeast: 5,
    value: ({ pushedPerSecond }) => rate(pushedPerSecond),
  },
  {
    title: 'OUT/s',
    align: 'right',
    value: ({ completedPerSecond }) => rate(completedPerSecond),
  },
  { title: 'OLDEST', align: 'right', value: ({ oldestAgeMs }) => ago(oldestAgeMs) },
]

const stateColumn: TableColumn<Json> = {
  title: 'STATE',
  value: stateOf,
  paint: ({ state }) => stateColours[state as keyof typeof stateColours],
}

const stateColours: Readonly<Record<string, Paint>> = {
  held: colors.red,
  no_consumers: colors.red,
  paused: colors.yellow,
  ok: colors.green,
}

const narrowGap = ' '

function formatNarrow(queues: readonly Json[], screenWidth: number): string[] {
  const cells = queues.map((queue) => figureColumns.map(({ value }) => showCell(value(queue))))
  const widths = figureColumns.map((column) => naturalWidth(queues, column))
  const figures = widths.reduce((total, width) => total + width + narrowGap.length, 0)
  const nameWidth = Math.min(nameWidthMax, Math.max(5, screenWidth - figures))
  const titles = figureColumns.map(({ title }, i) => title.padStart(widths[i] ?? 0))
  const lines = [colors.bold(['QUEUE'.padEnd(nameWidth), ...titles].join(narrowGap))]
  for (const [i, queue] of queues.entries()) {
    const name = showCell(queue.queue)
    const isLong = widthOf(name) > nameWidth
    if (isLong) lines.push(cut(name, screenWidth))
    const row = figureColumns.map(({ paint }, column) => {
      const text = (cells[i]?.[column] ?? '').padStart(widths[column] ?? 0)
      return paint?.(queue)?.(text) ?? text
    })
    lines.push([padEnd(isLong ? '' : name, nameWidth), ...row].join(narrowGap))
    if (queue.state !== 'ok') {
      const state = cut(`  ${showCell(stateOf(queue))}`, screenWidth)
      lines.push(stateColours[queue.state]?.(state) ?? state)
    }
  }
  return lines
}

/** Large numbers in thousands or millions: `123k`, `45M`. */
export function compact(value: number): string | number {
  if (value >= 10_000_000) return `${Math.floor(value / 1_000_000)}M`
  return value >= 100_000 ? `${Math.floor(value / 1_000)}k` : value
}

/** A node of an earlier release has no rates. */
export function rate(perSecond: number | undefined): string | undefined {
  if (perSecond === undefined) return undefined
  if (perSecond === 0) return '0'
  return perSecond < 100 ? perSecond.toFixed(1) : String(compact(Math.round(perSecond)))
}

function stateOf({ state, held }: Json): string {
  if (state === 'no_consumers') return 'no consumers'
  if (state !== 'held') return state
  const reason = held.errorMessage === null ? '' : `: "${cut(held.errorMessage, errorWidthMax)}"`
  return `held${reason} until ${new Date(held.until).toLocaleTimeString('en-GB')}`
}

const errorWidthMax = 40

const statesByHarm = ['held', 'no_consumers', 'paused', 'ok']

/** Queues that do not move first, then those with dead letters, then those with the oldest messages. */
export function worstFirst(queues: readonly Json[]): Json[] {
  const harm = ({ state }: Json) => statesByHarm.indexOf(state)
  return [...queues].sort(
    (a, b) =>
      harm(a) - harm(b) ||
      Number(b.dead > 0) - Number(a.dead > 0) ||
      (b.oldestAgeMs ?? -1) - (a.oldestAgeMs ?? -1) ||
      b.scheduled - a.scheduled ||
      (a.queue < b.queue ? -1 : 1),
  )
}
