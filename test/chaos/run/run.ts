// Makes a run and checks its history. If a rule is broken, the history and the logs are kept.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { check, type Verdict } from '../checkers/check.ts'
import { sentence, shares, table, violations } from '../checkers/summary.ts'
import { readHistory } from '../history/history-reader.ts'
import { makeHistory, type RunOptions } from './make-history.ts'

export interface ChaosOptions extends RunOptions {
  readonly keep: boolean
  /** The command that repeats the run. */
  readonly replay: string
}

export async function runChaos(options: ChaosOptions): Promise<Verdict> {
  const { print, seed } = options
  const folder = await mkdtemp(join(tmpdir(), 'rouse-chaos-'))
  let verdict: Verdict | undefined
  try {
    const files = await makeHistory(folder, options)
    verdict = check(await readHistory(files))
    if (verdict.recoveries.length + verdict.notMade.length > 0) print(table(verdict))
    for (const remark of verdict.remarks) print(remark)
    if (!verdict.ok) {
      print(violations(verdict))
      await writeFile(join(folder, 'verdict.json'), JSON.stringify(verdict, undefined, 2))
    }
    return verdict
  } finally {
    if (verdict?.ok === true && !options.keep) {
      await rm(folder, { recursive: true, force: true })
    } else {
      print(`history and logs: ${folder}`)
      print(`to repeat the run: ${options.replay}`)
    }
    if (verdict !== undefined) {
      print(shares(verdict))
      print(sentence(verdict, { seed }))
    }
  }
}
