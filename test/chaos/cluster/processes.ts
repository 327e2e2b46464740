import { readFileSync } from 'node:fs'

/** The processes that a process started and that live; none if it has ended. */
export function childrenOf(pid: number): number[] {
  try {
    const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
    return pids.filter((one) => one !== '').map(Number)
  } catch {
    return []
  }
}

export function treeOf(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)]
}

/** False where there is no such process any more. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

/** All at one stroke: stopped first, so that none gets to say goodbye for another. */
export function killAll(pids: readonly number[]): void {
  for (const pid of pids) signal(pid, 'SIGSTOP')
  for (const pid of pids) signal(pid, 'SIGKILL')
}
