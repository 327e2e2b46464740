import colors from 'picocolors'

export interface TableColumn<Row> {
  readonly title: string
  readonly value: (row: Row) => string | number | null | undefined
  readonly align?: 'left' | 'right'
}

const gap = '  '

/** Aligns the columns and cuts rows at the width of the screen. */
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
  // Neutralises line breaks and escape codes in names.
  return value.replaceAll(/\p{Cc}/gu, '·')
}

function pad(text: string, width: number, align: 'left' | 'right'): string {
  return align === 'right' ? text.padStart(width) : text.padEnd(width)
}
