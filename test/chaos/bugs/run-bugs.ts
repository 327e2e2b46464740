// Runs a cluster with a bug in it and sees whether the rules that must notice do.
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
  readonly say: (line: string) => void
  readonly progress?: (line: string) => void
  /** Leaves history and logs where they are, and says where. */
  readonly keep?: boolean
}

export interface BugRun {
  /** The rules that must notice did. */
  readonly caught: boolean
  readonly fired: readonly RuleName[]
  readonly verdict: Verdict
}

/** A run with a bug may never drain; what is left by then is left. */
const drainSecondsMax = 20
const warmUpSeconds = 2
/** Shorter than a pop of the workloads waits, or nobody could be seen to wait in vain. */
const wakeMsMax = 1_000

/** Says a line, and answers whether it was caught. */
export async function runBug(name: string, options: BugRunOptions): Promise<boolean> {
  const bug = bugNamed(name)
  const { caught, fired } = await runWith([bug], options)
  const rules = fired.length === 0 ? 'nothing' : fired.join(', ')
  options.say(`${caught ? 'caught' : 'MISSED'}  ${name} (${bug.does}): ${rules}`)
  return caught
}

/** Several in one cluster: for those that do not hide each other. */
export async function runWith(
  seeded: readonly Bug[],
  { seed, say, progress = () => {}, keep = false }: BugRunOptions,
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
      say,
      progress,
    })
    const verdict = check(await readHistory(files))
    for (const remark of verdict.remarks) say(remark)
    const fired = verdict.rules.filter(({ count }) => count > 0).map(({ rule }) => rule)
    return { caught: seeded.every((bug) => isCaught(bug, fired)), fired, verdict }
  } finally {
    if (keep) say(`history and logs: ${folder}`)
    else await rm(folder, { recursive: true, force: true })
  }
}

export function isCaught({ caughtBy }: Bug, fired: readonly RuleName[]): boolean {
  return caughtBy.some((rule) => fired.includes(rule))
}

/** All of them, one after the other. Answers whether all were caught. */
export async function runBugs(options: BugRunOptions): Promise<boolean> {
  const missed: string[] = []
  for (const { name } of bugs) {
    if (!(await runBug(name, options))) missed.push(name)
  }
  const summary = `${bugs.length - missed.length} of ${bugs.length} bugs caught`
  options.say(missed.length === 0 ? summary : `${summary}; missed: ${missed.join(', ')}`)
  return missed.length === 0
}
