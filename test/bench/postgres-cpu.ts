import { readdirSync, readFileSync } from 'node:fs'

/** Clock ticks a second in /proc; 100 on every Linux that Node runs on. */
const ticksPerSecond = 100

/** CPU seconds that a postmaster and all its children have used so far, ended ones included. */
export function postgresCpuSeconds(postmasterPid: number): number {
  let ticks = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = readStat(name)
    if (stat === undefined) continue
    if (Number(name) === postmasterPid) ticks += stat.own + stat.endedChildren
    else if (stat.parent === postmasterPid) ticks += stat.own
  }
  return ticks / ticksPerSecond
}

function readStat(pid: string): { parent: number; own: number; endedChildren: number } | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined // it ended between the listing and the reading
  }
  // The command's name may hold spaces; fields are counted from behind its closing parenthesis.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [utime, stime, cutime, cstime] = fields.slice(11, 15).map(Number) as [
    number,
    number,
    number,
    number,
  ]
  return { parent: Number(fields[1]), own: utime + stime, endedChildren: cutime + cstime }
}
