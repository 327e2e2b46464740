// Output: a table on a terminal, compact JSON in a pipe or with --json.
import colors from 'picocolors'
import { stringifyExact } from './exact-json.ts'
import { formatTable, type TableColumn } from './table.ts'

export interface Output {
  /** Whether the output is a terminal and --json is not set. */
  readonly isHuman: boolean
  /** Prints one JSON document. */
  json(value: unknown): void
  /** Prints a line of text. */
  line(text?: string): void
  table<Row>(rows: readonly Row[], columns: readonly TableColumn<Row>[], nothing: string): void
  /** Prints to standard error, so that standard output contains only data. */
  note(text: string): void
}

export function createOutput(options: { readonly json?: boolean | undefined }): Output {
  const isHuman = options.json !== true && process.stdout.isTTY
  const line = (text = ''): void => void process.stdout.write(`${text}\n`)
  return {
    isHuman,
    line,
    json: (value) => line(stringifyExact(value)),
    table(rows, columns, nothing) {
      if (rows.length === 0) line(colors.dim(nothing))
      else for (const text of formatTable(rows, columns, screenWidth())) line(text)
    },
    note: (text) => void process.stderr.write(`${text}\n`),
  }
}

/** A terminal of unknown width reports 0. */
function screenWidth(): number | undefined {
  return process.stdout.columns || undefined
}
