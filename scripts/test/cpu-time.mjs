// How much CPU test files use, from /proc of Linux; other systems print none of it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { root } from '../run.mjs'

/** Linux counts in ticks of this length, on every architecture. */
const ticksPerSecond = 100
const listedMax = 30

/** A module to preload into a test process. */
export const cpuReporter = join(root, 'scripts/test/report-cpu.cjs')

/** What a test process has used, from the pipe of its reporter; undefined if it was killed. */
export async function readCpuSeconds(stream) {
  return secondsOf(await text(stream))
}

/** The most expensive files, as lines; with ROUSE_TEST_CPU=1 a run prints them. */
export function cpuList(reports) {
  const measured = reports.filter(({ cpuSeconds }) => cpuSeconds !== undefined)
  return measured
    .toSorted((a, b) => b.cpuSeconds - a.cpuSeconds)
    .slice(0, listedMax)
    .map(({ task, cpuSeconds }) => `CPU ${cpuSeconds.toFixed(1).padStart(6)} s ${task.name}`)
}

/** What a process has used until now, with all the processes that it has started and waited for. */
export function cpuSecondsOf(pid) {
  try {
    return secondsOf(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return undefined
  }
}

/** Fields 14 to 17 are utime, stime, cutime and cstime. The name in field 2 may contain spaces. */
function secondsOf(stat) {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (fields.length < 15) return undefined
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / ticksPerSecond
}
