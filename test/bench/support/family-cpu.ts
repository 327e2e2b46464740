import { readdirSync, readFileSync } from 'node:fs'

/** Clock ticks per second in /proc; 100 on every Linux that Node supports. */
const ticksPerSecond = 100

/** Returns the CPU seconds so far of a process and its children, including children that have ended. */
export function familyCpuSeconds(parentPid: number): number {
  let ticks = 0
  for (const pid of familyPids(parentPid)) {
    const stat = readStat(pid)
    if (stat === undefined) continue
    ticks += stat.own + (pid === parentPid ? stat.endedChildren : 0)
  }
  return ticks / ticksPerSecond
}

/** CPU seconds that one process has used so far. */
export function cpuSecondsOf(pid: number): number {
  return (readStat(pid)?.own ?? 0) / ticksPerSecond
}

/** Returns the pids of a process and its children. */
export function familyPids(parentPid: number): number[] {
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
  return pids.filter((pid) => pid === parentPid || readStat(pid)?.parent === parentPid)
}

function readStat(pid: number): { parent: number; own: number; endedChildren: number } | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined // the process ended after the directory was listed
  }
  // The command name may contain spaces, so fields are counted from its closing parenthesis on.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [utime, stime, cutime, cstime] = fields.slice(11, 15).map(Number) as [
    number,
    number,
    number,
    number,
  ]
  return { parent: Number(fields[1]), own: utime + stime, endedChildren: cutime + cstime }
}
