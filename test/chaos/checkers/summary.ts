// Prints a verdict: the table of faults, and the sentence with the result.
import type { RuleName, Verdict } from './check.ts'
import type { FaultRecovery } from './timing/recovery.ts'

/** The rules that the sentence always names, even with a count of 0. */
const named: ReadonlySet<RuleName> = new Set([
  'lost',
  'out of order',
  'pushed out of order',
  'overlapping leases',
  'two leases on a lane',
  'unexplained duplicates',
])

/** `N messages, F faults: 0 lost, 0 out of order, 0 overlapping leases, D duplicates (D explained), seed X` */
export function sentence(verdict: Verdict, { seed }: { readonly seed: number }): string {
  const count = (...rules: RuleName[]): string =>
    figure(
      verdict.rules.reduce((sum, { rule, count }) => (rules.includes(rule) ? sum + count : sum), 0),
    )
  const unexplained =
    verdict.rules.find(({ rule }) => rule === 'unexplained duplicates')?.count ?? 0
  const others = verdict.rules.filter(({ rule, count }) => count > 0 && !named.has(rule))
  return [
    `${figure(verdict.messages)} messages, ${figure(verdict.faults)} faults: ${count('lost')} lost`,
    `${count('out of order', 'pushed out of order')} out of order`,
    `${count('overlapping leases', 'two leases on a lane')} overlapping leases`,
    `${figure(verdict.duplicates)} duplicates (${figure(verdict.duplicates - unexplained)} explained)`,
    ...others.map(({ rule, count }) => `${figure(count)} ${rule}`),
    `seed ${seed}`,
  ].join(', ')
}

/** One line per fault with its count and recovery, then the faults that could not be injected. */
export function table(verdict: Verdict): string {
  const byName = new Map<string, FaultRecovery[]>()
  for (const recovery of verdict.recoveries) {
    const list = byName.get(recovery.fault.name)
    if (list === undefined) byName.set(recovery.fault.name, [recovery])
    else list.push(recovery)
  }
  const head = [
    'fault',
    'count',
    'push back after',
    'pop back after',
    'no push for',
    'leases back after expiry',
    'slow seconds',
  ]
  const rows = [...byName].map(([name, list]) => [
    name,
    String(list.length),
    spread(list.map(({ pushMs }) => pushMs)),
    spread(list.map(({ popMs }) => popMs)),
    spread(list.map(({ longestGapMs }) => longestGapMs)),
    spread(
      list.map(({ leasesBackMs }) => leasesBackMs),
      '-',
    ),
    String(Math.max(...list.map(({ slowSlices }) => slowSlices))),
  ])
  const reasons = new Map(verdict.notMade.map(({ name, lacks }) => [name, lacks]))
  const notMade = [...reasons].map(([name, reason]) => [
    name,
    '0',
    `not injected, needs: ${reason}`,
  ])
  return aligned([head, ...rows, ...notMade])
}

/** The number of messages by queue. */
export function shares({ messagesOf }: Verdict): string {
  return [...messagesOf].map(([queue, count]) => `${queue} ${figure(count)}`).join(', ')
}

/** The first violations of each broken rule. */
export function violations(verdict: Verdict): string {
  const lines = verdict.rules
    .filter(({ count }) => count > 0)
    .flatMap(({ rule, count, violations: shown }) => [
      `${rule}: ${figure(count)}`,
      ...shown.slice(0, 5).map(({ what }) => `  ${what}`),
    ])
  return lines.join('\n')
}

/** The median and the worst of these times. */
function spread(times: readonly (number | undefined)[], none = 'never'): string {
  const known = times.filter((time) => time !== undefined).sort((a, b) => a - b)
  const [median, worst] = [known[known.length >> 1], known.at(-1)]
  if (median === undefined || worst === undefined) return none
  return known.length === 1 ? seconds(worst) : `${seconds(median)} (at most ${seconds(worst)})`
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`
}

/** Pads the cells so that columns align. */
export function aligned(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(
      ...rows.filter((row) => row.length > 3 || column < 2).map((row) => row[column]?.length ?? 0),
    ),
  )
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function figure(count: number): string {
  return count.toLocaleString('en-US')
}
