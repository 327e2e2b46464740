import colors from 'picocolors'

export interface TableColumn<Row> {
  readonly title: string
  readonly value: (row: Row) => string | number | null | undefined
  readonly align?: 'left' | 'right'
}

const gap = '  '

/** Columns as wide as they need to be, no lines between them, no row longer than the screen. */
export function formatTable<Row>(
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  screenWidth = 120,
): string[] {
  const cells = rows.map((row) => columns.map(({ value }) => show(value(row))))
  const widths = columns.map(({ title }, i) =>
    Math.max(title.length, ...cells.map((row) => row[i]?.length ?? 0)),
  )
  const format = (row: readonly string[]): string =>
    row
      .map((cell, i) => pad(cell, widths[i] ?? 0, columns[i]?.align ?? 'left'))
      .join(gap)
      .trimEnd()
      .slice(0, screenWidth)
  return [colors.bold(format(columns.map(({ title }) => title))), ...cells.map(format)]
}

function show(value: string | number | null | undefined): string {
  if (value === null || value === undefined || value === '') return '–'
  if (typeof value === 'number') return value.toLocaleString('en-US')
  // A name with a line break or an escape code in it is shown, not obeyed.
  return value.replaceAll(/\p{Cc}/gu, '·')
}

function pad(text: string, width: number, align: 'left' | 'right'): string {
  return align === 'right' ? text.padStart(width) : text.padEnd(width)
}
