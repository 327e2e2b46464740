// Runs a cluster with a seeded bug and checks that the expected rules are broken.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { check, type RuleName, type Verdict } from '../checkers/check.ts'
import { readHistory } from '../history/history-reader.ts'
import { makeHistory } from '../run/make-history.ts'
import { workloads } from '../workloads/workloads.ts'
import { breakProduct } from './break-product.ts'
import type { Bug } from './bug.ts'
import { bugNamed, bugs } from './bugs.ts'

export interface BugRunOptions {
  readonly seed: number
  readonly print: (line: string) => void
  readonly progress?: (line: string) => void
  /** Keeps history and logs, and prints where they are. */
  readonly keep?: boolean
}

export interface BugRun {
  /** For every bug, at least one of its expected rules was broken. */
  readonly caught: boolean
  readonly fired: readonly RuleName[]
  readonly verdict: Verdict
}

/** A run with a bug may never drain; after this time the run ends with the messages that are left. */
const drainSecondsMax = 20
const warmUpSeconds = 2
/** Shorter than the long polls of the workloads, so that a missing wake-up shows. */
const wakeMsMax = 1_000

/** Prints a line. Resolves with whether the bug was caught. */
export async function runBug(name: string, options: BugRunOptions): Promise<boolean> {
  const bug = bugNamed(name)
  const { caught, fired } = await runWith([bug], options)
  const rules = fired.length === 0 ? 'nothing' : fired.join(', ')
  options.print(`${caught ? 'caught' : 'MISSED'}  ${name} (${bug.does}): ${rules}`)
  return caught
}

/** Runs several bugs in one cluster. They must not hide each other. */
export async function runWith(
  seeded: readonly Bug[],
  { seed, print, progress = () => {}, keep = false }: BugRunOptions,
): Promise<BugRun> {
  const folder = await mkdtemp(join(tmpdir(), 'rouse-bug-'))
  const names = new Set(seeded.flatMap((bug) => bug.workloads))
  const faults = seeded.flatMap((bug) => bug.faults)
  try {
    const files = await makeHistory(folder, {
      ...breakProduct(seeded.flatMap(({ replaces }) => replaces)),
      seed,
      workloads: workloads.filter(({ name }) => names.has(name)),
      rate: Math.max(...seeded.map(({ rate = 1 }) => rate)),
      standby: seeded.some(({ standby }) => standby === 'sync') ? 'sync' : 'none',
      seconds: Math.max(...seeded.map(({ seconds }) => seconds)),
      warmUpSeconds,
      faults: { faults, eachOnce: faults.length > 0, gapSeconds: [2, 3], faultSeconds: [6, 8] },
      wakeMsMax,
      drainSecondsMax,
      print,
      progress,
    })
    const verdict = check(await readHistory(files))
    for (const remark of verdict.remarks) print(remark)
    const fired = verdict.rules.filter(({ count }) => count > 0).map(({ rule }) => rule)
    return { caught: seeded.every((bug) => isCaught(bug, fired)), fired, verdict }
  } finally {
    if (keep) print(`history and logs: ${folder}`)
    else await rm(folder, { recursive: true, force: true })
  }
}

export function isCaught({ caughtBy }: Bug, fired: readonly RuleName[]): boolean {
  return caughtBy.some((rule) => fired.includes(rule))
}

/** Runs all bugs in turn. Resolves with whether all were caught. */
export async function runBugs(options: BugRunOptions): Promise<boolean> {
  const missed: string[] = []
  for (const { name } of bugs) {
    if (!(await runBug(name, options))) missed.push(name)
  }
  const summary = `${bugs.length - missed.length} of ${bugs.length} bugs caught`
  options.print(missed.length === 0 ? summary : `${summary}; missed: ${missed.join(', ')}`)
  return missed.length === 0
}
