// Output: a table on a terminal, compact JSON in a pipe or with --json.
import colors from 'picocolors'
import { stringifyExact } from './exact-json.ts'
import { formatTable, type TableColumn, visible } from './screen/table.ts'
import { wrap } from './screen/wrap.ts'

export interface Output {
  /** Whether the output is a terminal and --json is not set. */
  readonly isHuman: boolean
  /** The columns of the terminal, if it tells. */
  readonly width: number | undefined
  /** Prints one JSON document. */
  json(value: unknown): void
  /** Prints a line of text. */
  line(text?: string): void
  table<Row>(rows: readonly Row[], columns: readonly TableColumn<Row>[], nothing: string): void
  /** Prints names and values, one pair per line. Values of several lines are indented. */
  fields(pairs: readonly (readonly [string, string | number | null | undefined])[]): void
  /** Prints to standard error, so that standard output contains only data. */
  note(text: string): void
  /** A note with a command that can be copied. */
  hint(label: string, command: string): void
}

export function createOutput(options: { readonly json?: boolean | undefined }): Output {
  const isHuman = options.json !== true && process.stdout.isTTY
  // A terminal of unknown width reports 0.
  const width = process.stdout.columns || undefined
  const noteWidth = process.stderr.columns || Infinity
  const note = (text: string): void => void process.stderr.write(`${text}\n`)
  const line = (text = ''): void => void process.stdout.write(`${text}\n`)
  return {
    isHuman,
    width,
    line,
    json: (value) => line(stringifyExact(value)),
    table(rows, columns, nothing) {
      if (rows.length === 0) line(colors.dim(nothing))
      else for (const text of formatTable(rows, columns, width)) line(text)
    },
    fields(pairs) {
      const widest = Math.max(...pairs.map(([name]) => name.length))
      const indent = ' '.repeat(widest + 2)
      for (const [name, value] of pairs) {
        const text = value === null || value === undefined || value === '' ? '–' : String(value)
        const lines = text.split('\n').map(visible)
        line(`${colors.bold(name.padEnd(widest))}  ${lines.join(`\n${indent}`)}`)
      }
    },
    note: (text) => note(wrap(text, noteWidth).join('\n')),
    hint(label, command) {
      const isShort = label.length + 2 + command.length <= noteWidth
      note(isShort ? `${label}: ${command}` : `${label}:\n  ${command}`)
    },
  }
}
