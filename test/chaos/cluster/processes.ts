import { readFileSync } from 'node:fs'

/** The living child processes of a process; none if it has exited. */
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

/** False if the process no longer exists. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

/** Stops all of them first, so that none can clean up after another. */
export function killAll(pids: readonly number[]): void {
  for (const pid of pids) signal(pid, 'SIGSTOP')
  for (const pid of pids) signal(pid, 'SIGKILL')
}
