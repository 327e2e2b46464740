// Runs test files, four at a time, each in a separate process, and prints `N passed, M failed` for all runs
// together. Some long files, which do not measure time, run one after the other beside those four.
//
// Test files are TAP programs. They do not run under the tap command, whose TypeScript loader costs a second
// for every process that a test starts, but from a bundle of all of them.
//
// A file that fails is run once more, alone: some tests measure real time, on a machine whose cores are
// shared. Only a file that fails both times counts as failed. One that passes the second time is listed as
// `unsteady` at the end; that is a defect to investigate, in the test or in Rouse.
import { spawn } from 'node:child_process'
import { root, toolEnvironment } from '../run.mjs'
import { cpuList, cpuReporter, cpuSecondsOf, readCpuSeconds } from './cpu-time.mjs'
import { inSources } from './sources.mjs'
import { failureText, readTap } from './tap-report.mjs'
import { inStartOrder, isUntimed } from './test-files.mjs'

const jobs = 4
const fileTimeoutSeconds = 480
/** If more files fail than this, it is not by chance, and none is run again. */
const runAgainMax = 5

/** How many tests passed and failed, and the names of the unsteady files. */
export async function runTap(files, settings = {}) {
  return runSuites([{ files, settings }])
}

/** Runs several lists of files, each with its own environment, in one schedule. */
export async function runSuites(suites) {
  // They need packages, so they are loaded after the set-up.
  const { bundleNode } = await import('./bundle-node.mjs')
  const { bundleTests } = await import('./bundle-tests.mjs')
  const program = await bundleTests(suites.flatMap(({ files }) => files))
  const bundles = { ROUSE_TEST_NODE: await bundleNode() }
  const tasks = suites.flatMap(({ files, settings, note = '' }) =>
    inStartOrder(files).map((file) => ({
      program,
      file,
      name: `${file}${note}`,
      environment: { ...bundles, ...settings },
    })),
  )
  return runTasks(tasks)
}

/** A task is a file, the name under which it is reported, its environment, and the program that runs it. */
export async function runTasks(tasks) {
  const beside = tasks.filter(({ file }) => isUntimed(file))
  const timed = tasks.filter((task) => !beside.includes(task))
  const first = (await Promise.all([runFiles(timed, jobs), runFiles(beside, 1)])).flat()
  const again = first.filter(({ failed }) => failed > 0).map(({ task }) => task)
  if (process.env.ROUSE_TEST_CPU) for (const line of cpuList(first)) console.log(line)
  if (again.length === 0 || again.length > runAgainMax) return summary(first, [])
  console.log(`\nrunning again, alone: ${again.map(({ name }) => name).join(', ')}`)
  const second = await runFiles(again, 1)
  const steady = first.filter(({ task }) => !again.includes(task))
  return summary(
    [...steady, ...second],
    second.filter(({ failed }) => failed === 0),
  )
}

function summary(files, unsteady) {
  return {
    passed: sum(files.map(({ passed }) => passed)),
    failed: sum(files.map(({ failed }) => failed)),
    unsteady: unsteady.map(({ task }) => task.name),
  }
}

/** Prints the sum as the last line, and returns the exit code: 0 only if no test of any run failed. */
export function reportRuns(runs) {
  for (const name of runs.flatMap(({ unsteady }) => unsteady)) {
    console.log(`unsteady: ${name} failed once, then passed alone`)
  }
  const cpuSeconds = cpuSecondsOf('self')
  if (cpuSeconds !== undefined) {
    console.log(`CPU: ${cpuSeconds.toFixed(0)} s, with the checks and PostgreSQL`)
  }
  const passed = sum(runs.map((run) => run.passed))
  const failed = sum(runs.map((run) => run.failed))
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

async function runFiles(tasks, jobsMax) {
  const reports = []
  const waiting = tasks.values()
  async function work() {
    for (const task of waiting) reports.push(await runFile(task))
  }
  await Promise.all(Array.from({ length: jobsMax }, work))
  return reports
}

/** A file that fails as a whole (crash, timeout, or no test) counts as one failed test. */
async function runFile(task) {
  const { program, file, name, environment } = task
  const begunMs = performance.now()
  const child = spawn(
    process.execPath,
    [`--require=${cpuReporter}`, '--conditions=@rouse/source', program, file],
    {
      cwd: root,
      env: {
        ...toolEnvironment,
        TAP: '1',
        TAP_TIMEOUT: String(fileTimeoutSeconds),
        ROUSE_TEST_CPU_FD: '3',
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    },
  )
  const timer = setTimeout(() => child.kill('SIGKILL'), fileTimeoutSeconds * 1_000)
  const exited = new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(signal ?? code))
  })
  const [report, cpuSeconds] = await Promise.all([
    readTap(child.stdout),
    readCpuSeconds(child.stdio[3]),
  ])
  const end = await exited
  clearTimeout(timer)
  const isEmpty = report.passed + report.failed + report.skipped.length === 0
  if ((end !== 0 || isEmpty) && report.failed === 0) {
    report.lines.push(isEmpty ? 'the file has no tests' : `the file exited with ${end}`)
    report.failed = 1
  }
  if (report.failed > 0) console.log(inSources(failureText(report.lines), program))
  const tests = `${report.passed} passed${report.failed > 0 ? `, ${report.failed} FAILED` : ''}`
  const seconds = ((performance.now() - begunMs) / 1_000).toFixed(1)
  const cpu = cpuSeconds === undefined ? '' : `, CPU ${cpuSeconds.toFixed(1)} s`
  console.log(`${report.failed > 0 ? '✗' : '✓'} ${name}: ${tests} (${seconds} s${cpu})`)
  for (const what of report.skipped) console.log(what)
  return { task, passed: report.passed, failed: report.failed, cpuSeconds }
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0)
}
