import { type Figures, type Run, sizeMb } from './judge.ts'

/** Formats the run as a table with a column for its start and one for its end. */
export function tableText({ start, end }: Run): string[] {
  const row = (what: string, before: string, after: string): string =>
    `${what.padEnd(38)}${before.padStart(28)}${after.padStart(28)}`
  const number = (what: string, pick: (figures: Figures) => number, digits = 0): string =>
    row(what, pick(start).toFixed(digits), pick(end).toFixed(digits))
  const names = (pick: (figures: Figures) => object): string[] => [
    ...new Set([...Object.keys(pick(start)), ...Object.keys(pick(end))]),
  ]
  return [
    row('', 'start', 'end'),
    number('messages a second', (f) => f.messagesPerSecond),
    number('CPU of nodes per message, µs', (f) => f.nodeUs),
    number('CPU of PostgreSQL per message, µs', (f) => f.postgresUs),
    row(
      'push p50 / p99, ms',
      pair(start.pushP50Ms, start.pushP99Ms),
      pair(end.pushP50Ms, end.pushP99Ms),
    ),
    row(
      'delivery p50 / p99, ms',
      pair(start.deliveryP50Ms, start.deliveryP99Ms),
      pair(end.deliveryP50Ms, end.deliveryP99Ms),
    ),
    number('messages not completed', (f) => f.pending),
    ...names((f) => f.memoryMb).map((name) =>
      number(`memory of ${name}, MB`, (f) => f.memoryMb[name] ?? Number.NaN),
    ),
    ...names((f) => f.lagSeconds).map((kind) =>
      number(`retention of ${kind} behind, s`, (f) => f.lagSeconds[kind] ?? Number.NaN, 1),
    ),
    number('all tables and indexes, MB', sizeMb, 1),
    row('table', 'MB+indexes, live+dead', 'MB+indexes, live+dead'),
    ...names((f) => f.tables).map((name) => row(name, rowsText(start, name), rowsText(end, name))),
  ]
}

function pair(p50: number, p99: number): string {
  return `${p50.toFixed(1)} / ${p99.toFixed(1)}`
}

function rowsText({ tables }: Figures, name: string): string {
  const table = tables[name]
  if (table === undefined) return '-'
  return `${table.tableMb.toFixed(1)}+${table.indexMb.toFixed(1)}, ${table.live}+${table.dead}`
}
