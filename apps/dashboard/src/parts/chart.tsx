import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useStore } from '../api/store.ts'
import { theme } from '../shell/theme.ts'

export interface Line {
  readonly label: string
  /** The name of a colour of the style sheet. */
  readonly color: string
  readonly values: readonly (number | null)[]
}

/** Lines over time. `times` are seconds. A step without a value is a gap, not zero. */
export function Chart({
  label,
  times,
  lines,
  height = 180,
}: {
  label: string
  times: readonly number[]
  lines: readonly Line[]
  height?: number
}) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const chosen = useStore(theme)
  const shape = lines.map((line) => `${line.label} ${line.color}`).join()

  useEffect(() => {
    const element = place.current
    if (element === null) return
    const own = new uPlot(optionsOf(element, lines, height), dataOf(times, lines), element)
    plot.current = own
    const resized = new ResizeObserver(() => own.setSize({ width: element.clientWidth, height }))
    resized.observe(element)
    return () => {
      resized.disconnect()
      own.destroy()
    }
    // Other data does not need another chart.
  }, [shape, height, chosen])

  useEffect(() => {
    plot.current?.setData(dataOf(times, lines))
  }, [times, lines])

  return <div class="chart" ref={place} role="img" aria-label={label} />
}

function dataOf(times: readonly number[], lines: readonly Line[]): uPlot.AlignedData {
  return [[...times], ...lines.map(({ values }) => [...values])] as uPlot.AlignedData
}

function optionsOf(element: HTMLElement, lines: readonly Line[], height: number): uPlot.Options {
  const style = getComputedStyle(element)
  const color = (name: string) => style.getPropertyValue(`--${name}`).trim()
  const axis = {
    stroke: color('muted'),
    grid: { stroke: color('line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  }
  return {
    width: Math.max(element.clientWidth, 100),
    height,
    legend: { live: true },
    cursor: { points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, 1)] } },
    axes: [
      { ...axis, space: 80, values: (_plot: uPlot, at: number[]) => at.map(clockOf) },
      { ...axis, size: 46 },
    ],
    series: [
      { label: 'at', value: (plot: uPlot, at: number | null) => clockOf(at ?? lastOf(plot, 0)) },
      ...lines.map((line) => ({
        label: line.label,
        stroke: color(line.color),
        width: 1.5,
        points: { show: false },
        value: (plot: uPlot, value: number | null, series: number) => {
          return shownRate(value ?? lastOf(plot, series))
        },
      })),
    ],
  }
}

/** Without a cursor over the chart, the legend shows the newest values. */
function lastOf(plot: uPlot, series: number): number | undefined {
  const values = plot.data[series] as readonly (number | null)[] | undefined
  return values?.findLast((value) => value !== null) ?? undefined
}

function shownRate(value: number | undefined): string {
  return value === undefined ? '–' : value.toFixed(1)
}

/** The time of day; a chart never shows more than a day. */
function clockOf(seconds: number | undefined): string {
  if (seconds === undefined) return '–'
  return new Date(seconds * 1_000).toLocaleTimeString('en-GB')
}

const sparkWidth = 72
const sparkHeight = 18

/** A line without axes, for rows of tables. */
export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  const top = Math.max(...values, 1)
  const step = sparkWidth / Math.max(values.length - 1, 1)
  const points = values
    .map(
      (value, i) =>
        `${(i * step).toFixed(1)},${(sparkHeight - 1 - (value / top) * (sparkHeight - 2)).toFixed(1)}`,
    )
    .join(' ')
  return (
    <svg class="spark" width={sparkWidth} height={sparkHeight} role="img" aria-label={label}>
      {values.length < 2 ? null : <polyline points={points} />}
    </svg>
  )
}
