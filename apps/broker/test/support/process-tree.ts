import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Kills a process and all its children together, so that none can shut down cleanly. */
export async function killTree(child: ChildProcess): Promise<void> {
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const pids = tree(child.pid as number)
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  await exited
}

/** The running children of a process. */
export function childrenOf(pid: number): number[] {
  const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
  return pids.filter((one) => one !== '').map(Number)
}

function tree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(tree)]
}
