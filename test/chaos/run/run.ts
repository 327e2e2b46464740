// A run and its judgement. The history and the logs stay where they are if a rule fired.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { check, type Verdict } from '../checkers/check.ts'
import { sentence, shares, table, violations } from '../checkers/summary.ts'
import { readHistory } from '../history/history-reader.ts'
import { makeHistory, type RunOptions } from './make-history.ts'

export interface ChaosOptions extends RunOptions {
  readonly keep: boolean
  /** The command that makes the same run again. */
  readonly replay: string
}

export async function runChaos(options: ChaosOptions): Promise<Verdict> {
  const { say, seed } = options
  const folder = await mkdtemp(join(tmpdir(), 'rouse-chaos-'))
  let verdict: Verdict | undefined
  try {
    const files = await makeHistory(folder, options)
    verdict = check(await readHistory(files))
    if (verdict.recoveries.length + verdict.notMade.length > 0) say(table(verdict))
    for (const remark of verdict.remarks) say(remark)
    if (!verdict.ok) {
      say(violations(verdict))
      await writeFile(join(folder, 'verdict.json'), JSON.stringify(verdict, undefined, 2))
    }
    return verdict
  } finally {
    if (verdict?.ok === true && !options.keep) {
      await rm(folder, { recursive: true, force: true })
    } else {
      say(`history and logs: ${folder}`)
      say(`to run it again: ${options.replay}`)
    }
    if (verdict !== undefined) {
      say(shares(verdict))
      say(sentence(verdict, { seed }))
    }
  }
}
