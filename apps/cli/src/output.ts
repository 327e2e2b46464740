// Where answers go: a table on a terminal, compact JSON in a pipe or with --json.
import colors from 'picocolors'
import { stringifyExact } from './exact-json.ts'
import { formatTable, type TableColumn } from './table.ts'

export interface Output {
  /** Whether somebody reads a screen. */
  readonly isHuman: boolean
  /** One document. */
  json(value: unknown): void
  /** For a person. */
  line(text?: string): void
  table<Row>(rows: readonly Row[], columns: readonly TableColumn<Row>[], nothing: string): void
  /** Beside the data. */
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

/** A terminal that does not know its width says 0. */
function screenWidth(): number | undefined {
  return process.stdout.columns || undefined
}
