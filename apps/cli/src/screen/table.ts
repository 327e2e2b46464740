// Tables that fit the screen: long texts are shortened first, then the least important columns are left out.
import colors from 'picocolors'
import { cut, padEnd, padStart, widthOf } from './width.ts'

export type Paint = (text: string) => string

export interface TableColumn<Row> {
  readonly title: string
  readonly value: (row: Row) => string | number | null | undefined
  readonly align?: 'left' | 'right'
  /** At least this wide, so that columns do not move when values change. */
  readonly widthLeast?: number
  /** May be shortened to this width. Other columns keep their width. */
  readonly widthMin?: number
  /** Left out if the screen is too narrow, the last such column first. */
  readonly optional?: boolean
  readonly paint?: (row: Row) => Paint | undefined
}

const gap = '  '
export const widthDefault = 120

export function formatTable<Row>(
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  screenWidth = widthDefault,
): string[] {
  const { shown, widths } = fit(rows, columns, screenWidth)
  const line = (cells: readonly string[], paints: readonly (Paint | undefined)[]): string =>
    cells
      .map((cell, i) => {
        const isLast = i === cells.length - 1
        const text = pad(cut(cell, widths[i] ?? 0), widths[i] ?? 0, shown[i]?.align, isLast)
        return paints[i]?.(text) ?? text
      })
      .join(gap)
  const titles = shown.map(({ title }) => title)
  return [
    colors.bold(line(titles, []).trimEnd()),
    ...rows.map((row) =>
      line(
        shown.map(({ value }) => showCell(value(row))),
        shown.map(({ paint }) => paint?.(row)),
      ).trimEnd(),
    ),
  ]
}

/** The columns that have room, and their widths. */
function fit<Row>(
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  screenWidth: number,
): { shown: readonly TableColumn<Row>[]; widths: number[] } {
  let shown = columns
  for (;;) {
    const widths = shown.map((column) => naturalWidth(rows, column))
    const least = shown.map(({ title, widthMin }, i) =>
      Math.min(
        widths[i] ?? 0,
        widthMin === undefined ? Infinity : Math.max(widthMin, title.length),
      ),
    )
    const room = screenWidth - gap.length * (shown.length - 1)
    const dropped = shown.findLastIndex(({ optional }) => optional === true)
    if (sum(least) <= room || dropped === -1) {
      shorten(widths, least, room)
      return { shown, widths }
    }
    shown = shown.filter((_, i) => i !== dropped)
  }
}

export function naturalWidth<Row>(
  rows: readonly Row[],
  { title, value, widthLeast = 0 }: TableColumn<Row>,
): number {
  return rows.reduce(
    (widest, row) => Math.max(widest, widthOf(showCell(value(row)))),
    Math.max(title.length, widthLeast),
  )
}

/** Takes width from the widest column that can spare it, until the columns fit. */
function shorten(widths: number[], least: readonly number[], room: number): void {
  for (let over = sum(widths) - room; over > 0; over -= 1) {
    let widest = -1
    for (const [i, width] of widths.entries()) {
      if (width > (least[i] ?? 0) && width > (widths[widest] ?? 0)) widest = i
    }
    if (widest === -1) return
    widths[widest] = (widths[widest] ?? 0) - 1
  }
}

/** The text of a cell. Line breaks and escape codes in names are neutralised. */
export function showCell(value: string | number | null | undefined): string {
  if (value === null || value === undefined || value === '') return '–'
  if (typeof value === 'number') return value.toLocaleString('en-US')
  return visible(value)
}

/** The text without characters that control a terminal or turn the direction of what follows. */
export function visible(text: string): string {
  return text.replaceAll(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, '·')
}

function pad(
  text: string,
  width: number,
  align: 'left' | 'right' = 'left',
  isLast = false,
): string {
  if (align === 'right') return padStart(text, width)
  return isLast ? text : padEnd(text, width)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
