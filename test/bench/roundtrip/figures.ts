// Counts and CPU per message, from two samples of the nodes' stats and of /proc.
import { type Limit, percentile } from '../support/figures.ts'
import type { NodeStats } from '../support/nodes.ts'
import type { LoadResult } from './load.ts'

export interface Sample {
  /** Seconds. */
  readonly cpu: { readonly primaries: number; readonly workers: number; readonly postgres: number }
  readonly stats: readonly NodeStats[]
}

export interface Figures {
  readonly messages: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Per message. Undefined where the build does not count it. */
  readonly queries: Readonly<Record<string, number>>
  readonly emptyPops: Readonly<Record<string, number>> | undefined
  readonly wakes: number
  readonly ipcSends: number | undefined
  readonly hintDatagrams: number | undefined
  readonly datagrams: number
  /** Microseconds per message. */
  readonly cpu: Readonly<Record<'primaries' | 'workers' | 'postgres' | 'load', number>>
}

export function figuresOf(before: Sample, after: Sample, load: LoadResult): Figures {
  const { messages } = load
  const grown = (read: (stats: NodeStats) => number): number =>
    (total(after.stats, read) - total(before.stats, read)) / messages
  const grownIf = (read: (stats: NodeStats) => number | undefined): number | undefined =>
    after.stats.every((stats) => read(stats) !== undefined)
      ? grown((stats) => read(stats) ?? 0)
      : undefined
  const grownBy = (
    read: (stats: NodeStats) => Readonly<Record<string, number>> | undefined,
  ): Record<string, number> => {
    const names = new Set(after.stats.flatMap((stats) => Object.keys(read(stats) ?? {})))
    const entries = [...names].map(
      (name) => [name, grown((stats) => read(stats)?.[name] ?? 0)] as const,
    )
    return Object.fromEntries(entries.filter(([, count]) => count > 0))
  }
  const emptyPops = (stats: NodeStats) =>
    stats.counters['emptyPops'] as Readonly<Record<string, number>> | undefined
  const micros = (seconds: number): number => (seconds * 1e6) / messages
  return {
    messages,
    perSecond: messages / load.seconds,
    p50Ms: percentile(load.latenciesMs, 0.5),
    p99Ms: percentile(load.latenciesMs, 0.99),
    queries: grownBy(({ queries }) => queries),
    emptyPops: after.stats.every((stats) => emptyPops(stats) !== undefined)
      ? grownBy(emptyPops)
      : undefined,
    wakes: grown(({ wakes }) => sum(Object.values(wakes))),
    ipcSends: grownIf(({ ipc }) => ipc?.sends),
    hintDatagrams: grownIf(({ gossip }) => gossip.hintDatagramsSent),
    datagrams: grown(({ gossip }) => gossip.datagramsSent),
    cpu: {
      primaries: micros(after.cpu.primaries - before.cpu.primaries),
      workers: micros(after.cpu.workers - before.cpu.workers),
      postgres: micros(after.cpu.postgres - before.cpu.postgres),
      load: micros(load.cpuSeconds),
    },
  }
}

/** CPU of the product, without the load generator. */
export function cpuMicros({ cpu }: Figures): number {
  return cpu.primaries + cpu.workers + cpu.postgres
}

export function describe(figures: Figures, rate: number): string {
  const { queries, emptyPops, wakes, ipcSends, hintDatagrams, datagrams, cpu } = figures
  return [
    `  ${figures.messages} messages at ${rate}/s (${Math.round(figures.perSecond)}/s reached), p50 ${figures.p50Ms} ms, p99 ${figures.p99Ms} ms`,
    `  per message: SQL calls ${list(queries)}`,
    `    empty pops ${emptyPops === undefined ? 'not counted' : list(emptyPops) || 'none'}`,
    `    wake-ups ${round(wakes)}, IPC sends ${count(ipcSends)}, hint datagrams ${count(hintDatagrams)} (all datagrams ${round(datagrams)})`,
    `    CPU µs: primaries ${Math.round(cpu.primaries)}, workers ${Math.round(cpu.workers)}, PostgreSQL ${Math.round(cpu.postgres)}: ${Math.round(cpuMicros(figures))}; load generator ${Math.round(cpu.load)}`,
  ].join('\n')
}

/** The targets for 100 messages a second. */
export function limitsOf(figures: Figures): Limit[] {
  const pops = figures.queries['rouse.pop'] ?? 0
  return [
    { what: 'pops per message', value: round(pops), max: 1.2 },
    { what: 'hint datagrams per message', value: round(figures.hintDatagrams ?? 0), max: 1 },
    { what: 'IPC sends per message', value: round(figures.ipcSends ?? 0), max: 6 },
    { what: 'CPU µs per message', value: Math.round(cpuMicros(figures)), max: 2_500 },
  ]
}

function list(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .sort(([, one], [, other]) => other - one)
    .map(([name, value]) => `${name} ${round(value)}`)
    .join(', ')
}

function count(value: number | undefined): string {
  return value === undefined ? 'not counted' : String(round(value))
}

function total(stats: readonly NodeStats[], read: (stats: NodeStats) => number): number {
  return sum(stats.map(read))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, number) => all + number, 0)
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
